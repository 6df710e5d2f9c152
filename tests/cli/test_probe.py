"""`probe`: measured through the command, and read back by it."""

import json

from tests.cli.desk import Desk

TEXT = """\
[job]
name = "demo"
launch = "process"
[placement]
n_layers = 12
[[node]]
addr = "{host}:29500"
device = "cpu"
ckpt_dir = "models"
"""


def test_a_measured_probe_reads_back(desk: Desk) -> None:
    """Upstream's NodeCaps with speeds and an address, which a plan takes in place of a survey."""
    (desk.folder / "home/models").mkdir()
    desk.write(TEXT.format(host=desk.host))

    said = desk.good("probe", "--bench", "--json")
    (caps,) = said.document["hosts"].values()
    measured = [one["gflops"] for one in caps["devices"] if one["device"] == "cpu"]
    desk.write(said.out, "caps.json")
    desk.write(json.dumps(caps) + "\n", "caps.jsonl")

    assert caps["addr"] == f"{desk.host}:29500"
    assert measured[0] > 0.1
    assert caps["gflops"] >= measured[0]
    assert caps["io_mbps"] > 0.1
    for file in ("caps.json", "caps.jsonl"):
        plan = desk.good("plan", "--survey", file, "--json").document
        (rank,) = plan["ranks"]
        assert (rank["address"], rank["device"]) == (f"{desk.host}:29500", "cpu")
        assert rank["action"] == "unmanaged"
        assert "local is known by its NodeCaps alone" in json.dumps(plan["notices"])


def test_a_measured_probe_shows_speeds(desk: Desk) -> None:
    """With --bench the table has two columns more; what was not measured says so."""
    desk.write(TEXT.format(host=desk.host))

    plain, measured = (desk.good("probe", *words).out for words in ((), ("--bench",)))

    assert "GFLOP/s" not in plain
    assert "GFLOP/s" in measured
    assert "disk MB/s" in measured
    # There is no folder of checkpoints to read from.
    assert "not measured" in measured


def test_capabilities_that_are_not_whole_are_named(desk: Desk) -> None:
    """The file and what it lacks; no host is asked instead."""
    desk.write(TEXT.format(host=desk.host))
    desk.write('[{"addr": "10.0.0.1:9100", "devices": []}]', "caps.json")

    done = desk.run("plan", "--survey", "caps.json")

    assert done.code == 1
    assert "caps.json: not whole NodeCaps: capabilities number 1: os: Field required" in done.err
