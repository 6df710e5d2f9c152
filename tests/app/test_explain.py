"""Where the values of ranks and hosts come from, compiled from a saved survey."""

from dataclasses import replace
from pathlib import Path

import pytest

from rlxdeploy.app.compile import Request
from rlxdeploy.app.explain import explain
from rlxdeploy.app.explained import Explained
from rlxdeploy.app.export import save_survey
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import nobody
from rlxdeploy.errors import UsageError
from rlxdeploy.model.host import Host
from rlxdeploy.model.survey import Device, Survey
from tests.resolve.lab import GIB, interface, machine, network

TEXT = """\
[job]
wire = "rlx"
security = "none"
launch = "process"
min_nodes = 3
[[node]]
ssh = "a"
addr = "10.0.0.1:4000"
name = "alpha"
[[node]]
ssh = "b"
slots = 2
device = "cpu"
[[node]]
ssh = "b-too"
role = "standby"
standby_for = "10.0.0.1:4000"
name = "spare"
[[node]]
ssh = "c"
role = "draining"
[[node]]
ssh = "d"
[[node]]
addr = "10.0.0.9:5000"
managed = false
name = "old"
"""
BROKEN = Device("cuda", "Card", GIB, available=False, error="driver mismatch")


def surveyed() -> Survey:
    """Return machines of all kinds; d is down, and b answers to two names."""
    lan = interface("eth0", "10.0.0.2/24", mac="02::b")
    docker = interface("docker0", "172.17.0.1/16", kind="bridge")
    b = replace(machine("b", "", BROKEN), network=network(lan, docker))
    hosts = (
        machine("a", "10.0.0.1/24"),
        b,
        replace(b, host=Host("b-too", "b-too")),
        machine("c", "10.0.0.3/24"),
    )
    return Survey({one.host.name: one for one in hosts}, {"d": "connect: timed out"})


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    """Return the request to compile the whole of it with no host up."""
    (tmp_path / "inventory.toml").write_text(TEXT, encoding="utf-8")
    save_survey(surveyed(), tmp_path / "lab.json")
    return Request(tmp_path / "inventory.toml", tmp_path / "lab.json")


def explained(what: str, request: Request) -> Explained:
    with Lab() as lab:
        return explain(what, request, lab, nobody)


def rows(found: Explained) -> list[tuple[str, str, str]]:
    """Return the values with the inventory's path left out of the reasons."""
    return [(one.name, one.value, one.why.rpartition("/")[2]) for one in found.values]


def test_a_rank_shows_the_line_of_each_value(request_: Request) -> None:
    """What is written has its line, what was found its probe, what is neither its rule."""
    found = explained("0", request_)

    assert found.subject == "rank 0"
    assert rows(found)[:6] == [
        ("rank", "0", "in the order of the file"),
        ("node", "alpha", "inventory.toml:6:3"),
        ("host", "a", "inventory.toml:7:1: node[0].ssh"),
        ("device", "cpu", "the host reports no other usable device"),
        ("address", "10.0.0.1", "inventory.toml:8:1: node[0].addr)"),
        ("port", "4000", "inventory.toml:8:1: node[0].addr"),
    ]
    assert ("launch", "process", "inventory.toml:4:1: job.launch") in rows(found)
    assert {one.name for one in found.environment} >= {"RANK", "PEERS", "RLX_PLAN"}
    assert all(one.why for one in (*found.values, *found.environment))


def test_a_host_shows_who_is_on_it_and_why(request_: Request) -> None:
    """Its nodes under either name, its ranks, its devices, and each of its addresses."""
    found = rows(explained("b-too", request_))

    assert found == rows(explained("b", request_))
    assert found[:4] == [
        ("node", "b (active)", "inventory.toml:10:3"),
        ("node", "spare (standby)", "inventory.toml:14:3; b-too is b under another name"),
        ("rank", "1", "b: in the order of the file"),
        ("rank", "2", "b: in the order of the file"),
    ]
    why = "reported by the survey, not usable: driver mismatch"
    assert ("device", "cuda Card, 1.1 GB", why) in found
    assert ("address", "10.0.0.2 (eth0)", "peers dial rank 1, 2 there") in found
    why = "passed over: a bridge or made for containers"
    assert ("address", "172.17.0.1 (docker0)", why) in found


@pytest.mark.parametrize(
    ("what", "row"),
    [
        ("c", ("node", "c (draining)", "inventory.toml:19:3")),
        ("c", ("rank", "none", "no active node of the group is on this host")),
        ("d", ("survey", "no answer", "connect: timed out")),
        ("alpha", ("rank", "0", "alpha: in the order of the file")),
        ("old", ("host", "old", "inventory.toml:26:1: node[5].managed: it runs elsewhere")),
        ("3", ("port", "5000", "inventory.toml:25:1: node[5].addr")),
    ],
)
def test_whoever_has_no_usual_part_is_explained_too(
    request_: Request, what: str, row: tuple[str, str, str]
) -> None:
    """Draining, silent and unmanaged ones, by host, node or rank."""
    assert row in rows(explained(what, request_))


def test_what_was_noticed_about_it_stands_below(request_: Request) -> None:
    """Only that: other nodes' notices are theirs."""
    silent = explained("d", request_).notices

    assert [one.message for one in silent] == ["d is left out: connect: timed out"]
    assert explained("a", request_).notices == ()


@pytest.mark.parametrize("what", ["4", "-1", "e", ""])
def test_what_there_is_not_is_a_bad_command_line(request_: Request, what: str) -> None:
    """The error names what there is."""
    with pytest.raises(UsageError, match="is no rank from 0 to 3, and no host of a, b, b-too, c"):
        explained(what, request_)
