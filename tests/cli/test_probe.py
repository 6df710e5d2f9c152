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
    """With --bench the table has two columns more; what was not measured says so, and why."""
    desk.write(TEXT.format(host=desk.host))

    plain, measured = (desk.good("probe", *words) for words in ((), ("--bench",)))

    assert "GFLOP/s" not in plain.out
    assert "GFLOP/s" in measured.out
    assert "disk MB/s" in measured.out
    # There is no folder of checkpoints to read from.
    assert "not measured" in measured.out
    assert "notice: local: disk not measured: [Errno 2] No such file or directory" in measured.err


def test_capabilities_that_are_not_whole_are_named(desk: Desk) -> None:
    """The file and what it lacks; no host is asked instead."""
    desk.write(TEXT.format(host=desk.host))
    desk.write('[{"addr": "10.0.0.1:9100", "devices": []}]', "caps.json")

    done = desk.run("plan", "--survey", "caps.json")

    assert done.code == 1
    assert "caps.json: not whole NodeCaps: capabilities number 1: os: Field required" in done.err


BY_SPEED = """\
[job]
name = "demo"
launch = "process"
[placement]
policy = "auto"
n_layers = 12
layer_bytes = 1
layer_flops = 1e6
"""


def test_layers_by_speed_need_one_measurement_and_then_an_apply(desk: Desk) -> None:
    """Unmeasured they are refused with the way; measured, apply takes what is kept, and rests.

    A plan saved from a survey is applied as it was shown, with no speeds kept either.
    """
    nodes = "".join(
        f'[[node]]\nname = "n{number}"\naddr = "{desk.host}:{29500 + number}"\ndevice = "cpu"\n'
        for number in range(2)
    )
    desk.write(BY_SPEED + nodes)
    kept = desk.lab / ".rlxdeploy/machines.speeds"

    refused = desk.run("plan")
    measured = desk.good("probe", "--bench", "--out", "lab.json")
    plan = desk.good("plan")
    kept.rename(desk.lab / "away")
    desk.good("plan", "--survey", "lab.json", "--out", "plan.json")
    applied = desk.good("apply", "plan.json", "--yes")
    (desk.lab / "away").rename(kept)

    assert refused.code == 1
    assert "measure once with probe --bench" in refused.err
    assert "the speeds are kept for plan and apply" in measured.err
    assert "speeds measured on 20" in plan.out
    assert f"  {desk.host}:29500  0:" in plan.out
    assert "2 of 2 ranks joined" in applied.out
    assert "Nothing to change." in desk.good("apply").out


def test_a_plan_of_capabilities_is_not_saved(desk: Desk) -> None:
    """Nobody could carry it out; the message says what can be."""
    desk.write(TEXT.format(host=desk.host))
    desk.write(desk.good("probe", "--json").out, "caps.json")

    refused = desk.run("plan", "--survey", "caps.json", "--out", "plan.json")

    assert refused.code == 64
    assert "probe --out FILE" in refused.err
    assert not (desk.lab / "plan.json").exists()
