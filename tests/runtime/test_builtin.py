"""The built-in node as whoever starts it sees it: real processes, signals, exit codes, READY."""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path
from typing import Callable, Dict, Iterator

import pytest

from tests.runtime.cluster import soon_s
from tests.runtime.processes import Fleet

MakeFleet = Callable[..., Fleet]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[MakeFleet]:
    made = []

    def make(world: int, topology: str = "mesh", **more: str) -> Fleet:
        made.append(Fleet(tmp_path, world, topology, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("wire", ["rlx", "native"])
@pytest.mark.parametrize("topology", ["mesh", "star"])
def test_ranks_join_prove_themselves_and_leave_when_told(
    fleet: MakeFleet, topology: str, wire: str
) -> None:
    """READY comes after the check, the state files agree, and SIGTERM to all is a clean end."""
    ranks = fleet(3, topology, RLX_JOB="lab", RLX_PLAN="p1", RLX_WIRE=wire).start_all()
    assert all(rank.ready() for rank in ranks)

    states = [rank.state for rank in ranks]
    assert {state["phase"] for state in states} == {"ready"}
    assert len({state["digest"] for state in states}) == 1
    assert len(states[0]["digest"]) == 64
    assert len({state["epoch"] for state in states}) == 1
    assert [state["rank"] for state in states] == [0, 1, 2]
    assert [state["pid"] for state in states] == [rank.process.pid for rank in ranks]
    assert all(abs(state["joined_at"] - time.time()) < 60 for state in states)
    assert (states[0]["job"], states[0]["plan"], states[0]["missing"]) == ("lab", "p1", [])

    for rank in ranks:
        rank.signal(signal.SIGTERM)
    for rank in ranks:
        # The last one may have lost the others before it is told.
        code = rank.end().code
        assert code in {0, 75}
        assert code or rank.manager.wait_for("STOPPING=1")
        assert rank.state["phase"] == "leaving"


@pytest.mark.parametrize("wire", ["rlx", "native"])
def test_one_rank_told_to_leave_ends_with_0_and_the_others_know(
    fleet: MakeFleet, wire: str
) -> None:
    """SIGTERM to one rank: it has finished, the other has lost it."""
    stays, leaves = fleet(2, RLX_WIRE=wire).start_all()
    assert stays.ready()
    assert leaves.ready()
    leaves.signal(signal.SIGTERM)

    ended = leaves.end()
    assert (ended.code, leaves.state["error"]) == (0, None), ended
    left = stays.end()
    assert left.code == 75
    assert wire == "rlx" or "it finished and left the group" in left.err


@pytest.mark.parametrize(("wire", "victim"), [("rlx", 0), ("native", 1)])
def test_a_killed_rank_is_named_by_the_others_within_a_second(
    fleet: MakeFleet, victim: int, wire: str
) -> None:
    """SIGKILL, power cut of a process: exit 75, the rank on stderr and in the state file."""
    ranks = list(fleet(3, RLX_WIRE=wire).start_all())
    assert all(rank.ready() for rank in ranks)
    killed = ranks.pop(victim)
    killed.signal(signal.SIGKILL)
    began = time.monotonic()

    for rank in ranks:
        ended = rank.end()
        assert ended.code == 75, ended
        assert f"lost rank {victim} (127." in ended.err
        assert f"lost rank {victim}" in rank.state["error"]
    assert time.monotonic() - began < soon_s()


def test_a_missing_rank_is_named_while_joining_and_at_the_deadline(fleet: MakeFleet) -> None:
    """STATUS, state file and the last words all say which rank never came, and what was tried."""
    waiting = fleet(2, RLX_JOIN_TIMEOUT="1.5")
    rank = waiting.start(0)

    assert rank.manager.wait_for("STATUS=joining: still missing rank 1 of 2")
    assert rank.state["phase"] == "joining"
    assert rank.state["missing"] == [1]
    refused = f"dialled {waiting.peers[1]}: connection refused"
    ended = rank.end()
    assert ended.code == 75
    assert rank.state["in_vain"] == {"1": refused}
    assert 0 < rank.state["began_at"] <= time.time()
    assert f"rank 1: {refused}" in ended.err
    assert "still missing rank 1" in rank.state["error"]
    assert not rank.manager.wait_for("READY=1", 0)


def test_a_rank_told_to_leave_while_joining_leaves(fleet: MakeFleet) -> None:
    """SIGTERM does not wait for the join deadline."""
    rank = fleet(2).start(0)
    assert rank.manager.wait_for("STATUS=joining: still missing rank 1 of 2")
    rank.signal(signal.SIGTERM)

    assert rank.end(5).code == 0
    assert rank.state["phase"] == "leaving"


def test_a_rank_that_restarts_during_the_join_is_taken_back(fleet: MakeFleet) -> None:
    """Nobody exits: the group forms with the new process once all are there."""
    group = fleet(3)
    first, lost = group.start(0), group.start(1)
    assert first.manager.wait_for("STATUS=joining: still missing rank 2 of 3")
    assert lost.manager.wait_for("STATUS=joining: still missing rank 2 of 3")
    lost.signal(signal.SIGKILL)
    lost.end()
    others = [group.start(1), group.start(2)]

    assert all(rank.ready() for rank in (first, *others))


def test_ranks_of_another_plan_are_refused_with_both_plans(fleet: MakeFleet) -> None:
    """The join goes on until its deadline, as a rank may be about to be replaced; then 78."""
    group = fleet(2, RLX_JOIN_TIMEOUT="1.5")
    ranks = [group.start(0, RLX_PLAN="old"), group.start(1, RLX_PLAN="new")]

    for rank in ranks:
        ended = rank.end()
        assert ended.code == 78, ended
        assert "plan 'old'" in ended.err
        assert "plan 'new'" in ended.err
        assert not rank.manager.wait_for("READY=1", 0)


def test_once_checks_and_ends_with_0(fleet: MakeFleet) -> None:
    """With --once a group is proven and everybody leaves, whoever is last, and stops no service."""
    for rank in fleet(4, "star").start_all("--once"):
        ended = rank.end()
        assert ended.code == 0, ended
        assert "joined as rank" in ended.err
        assert rank.manager.wait_for("STATUS=left the group", 0.1)
        assert "STOPPING=1" not in rank.manager.heard


def test_bench_prints_latency_and_bandwidth_of_every_pair(fleet: MakeFleet) -> None:
    """The lower rank of each linked pair has one line on standard output."""
    ended = [rank.end() for rank in fleet(3).start_all("--bench")]

    assert [each.code for each in ended] == [0, 0, 0]
    assert [each.out.count("latency") for each in ended] == [2, 1, 0]
    assert "rank 0 to rank 2: latency" in ended[0].out
    assert "GB/s" in ended[1].out


def test_the_watchdog_is_fed_by_meetings_of_all(fleet: MakeFleet) -> None:
    """Also for ranks without a watchdog; when one hangs nobody is fed, when it goes on, all are."""
    group = fleet(3)
    fed, hangs = group.start(0, WATCHDOG_USEC="300000"), group.start(1)
    group.start(2)
    assert fed.ready()
    assert fed.manager.wait_for("WATCHDOG=1", 5)

    hangs.signal(signal.SIGSTOP)
    time.sleep(0.3)
    fed.manager.forget()
    assert not fed.manager.wait_for("WATCHDOG=1", 0.6)
    hangs.signal(signal.SIGCONT)
    assert fed.manager.wait_for("WATCHDOG=1", 5)


REFUSED: Dict[str, Dict[str, str]] = {
    "TOPOLOGY": {"TOPOLOGY": "ring"},
    "RLX_WIRE": {"RLX_WIRE": "mpi"},
    "RLX_KEY_FILE": {"RLX_WIRE": "native", "RLX_KEY_FILE": "/nowhere/to/be/found"},
    "RLX_BIND": {"DISCOVER": "1", "RLX_BIND": "::1"},
    "RLX_SECURITY": {"RLX_BIND": "192.0.2.1"},
    "RLX_STATE_FILE": {"RLX_STATE_FILE": "/nowhere/to/be/found"},
}


@pytest.mark.parametrize(("variable", "wrong"), REFUSED.items(), ids=REFUSED)
def test_what_starting_again_cannot_mend_is_78(
    fleet: MakeFleet, variable: str, wrong: Dict[str, str]
) -> None:
    """The one line on stderr names the variable at fault."""
    ended = fleet(2).start(0, **wrong).end()

    assert ended.code == 78, ended
    assert ended.err.startswith("rlx: ")
    assert variable in ended.err
    assert "Traceback" not in ended.err


def test_a_taken_port_is_78_and_names_the_holder(fleet: MakeFleet) -> None:
    """Whoever reads the log knows which process to stop."""
    group = fleet(2)
    host, _, port = group.peers[0].rpartition(":")
    with socket.create_server((host, int(port))):
        ended = group.start(0).end()

    assert ended.code == 78
    assert f"{host} port {port} is in use by " in ended.err
