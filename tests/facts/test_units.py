"""Instances under systemd and under supervisors, as the host shows them."""

import json

import pytest

from rlxdeploy.facts import units
from rlxdeploy.facts.question import Answer, Answers, Unanswered
from rlxdeploy.facts.supervisors import rank_of
from rlxdeploy.model.survey import RankSeen
from rlxdeploy.model.targets import Enquiry
from rlxdeploy.model.vocabulary import Launch

SHOWN = """\
clock|1700001000
uptime|1000.50
unit|Id=rlx-demo@0.service
unit|ActiveState=active
unit|MainPID=4711
unit|NRestarts=2
unit|StatusText=2 of 2 ranks joined = ready
unit|ExecMainCode=0
unit|ExecMainStatus=0
unit|UnitFileState=disabled
unit|ExecMainStartTimestampMonotonic=400000000
unit|
unit|Id=rlx-demo@1.service
unit|ActiveState=activating
unit|MainPID=0
unit|NRestarts=7
unit|StatusText=
unit|ExecMainCode=1
unit|ExecMainStatus=75
unit|UnitFileState=enabled
unit|ExecMainStartTimestampMonotonic=900000000
unit|
unit|Id=rlx-demo@2.service
unit|ActiveState=failed
unit|MainPID=0
unit|NRestarts=0
unit|ExecMainCode=2
unit|ExecMainStatus=9
unit|ExecMainStartTimestampMonotonic=0
enabled|/etc/systemd/system/multi-user.target.wants/rlx-demo@0.service
enabled|/etc/systemd/system/multi-user.target.wants/rlx-demo@5.service
state|/run/rlx/demo/0.state
json|{"joined": true,
json|"digest": "ab"}
state|/run/rlx/demo/1.state
json|{"joined": tr
"""

SAID = {
    "format": 1,
    "rank": 3,
    "supervisor_pid": 100,
    "supervisor_start": "5555",
    "pid": 101,
    "active": "active",
    "ready": True,
    "status": "joined",
    "restarts": 1,
    "since": 1700000123.5,
    "exit_status": None,
    "plan": "p",
    "release": "r",
}
# Field 22 is the start time; the command may hold blanks and parentheses.
PROC = "100 (py) R (x) S 1 100 100 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 {start} 1 1"


def read(**texts: str) -> tuple[RankSeen, ...]:
    given = {"system_units": "", "supervisors": "", **texts}
    return units.parse(
        Answers({name.replace("_", " "): Answer(text) for name, text in given.items()})
    )


def supervised(said: object, alive: str) -> RankSeen:
    text = f"supervisor|/data/run/3.supervisor\njson|{json.dumps(said)}\n\n{alive}\n"
    (seen,) = read(supervisors=text)
    return seen


def test_units_are_read_with_the_states_of_their_nodes() -> None:
    """State, restarts, start as wall clock, last exit and enablement come from what is shown."""
    first, second, third, fifth = read(system_units=SHOWN)

    assert first == RankSeen(
        rank=0,
        active="active",
        ready=True,
        pid=4711,
        restarts=2,
        since=1_700_000_399.5,
        status="2 of 2 ranks joined = ready",
        enabled=True,
        node={"joined": True, "digest": "ab"},
    )
    assert (second.active, second.ready, second.exit_status) == ("activating", False, 75)
    assert (second.enabled, second.node) == (True, {})
    assert (third.active, third.exit_status, third.since) == ("failed", 128 + 9, 0.0)
    assert fifth == RankSeen(5, "inactive", enabled=True)


def test_a_unit_that_outlives_its_process_has_ended() -> None:
    """RemainAfterExit keeps it active so that its exit status stays to be read."""
    shown = "unit|Id=rlx-demo@0.service\nunit|ActiveState=active\nunit|SubState=exited\n"
    (seen,) = read(system_units=f"{shown}unit|ExecMainCode=1\nunit|ExecMainStatus=0\n")

    assert (seen.active, seen.ready, seen.exit_status) == ("exited", False, 0)


def test_a_living_supervisor_is_believed() -> None:
    """What it wrote holds while its process runs under the same start time."""
    assert supervised(SAID, "proc|" + PROC.format(start=5555)) == RankSeen(
        rank=3,
        active="active",
        ready=True,
        pid=101,
        restarts=1,
        since=1700000123.5,
        status="joined",
    )


@pytest.mark.parametrize(
    "proof",
    [
        "",
        "proc|" + PROC.format(start=9999),
        "proc|" + PROC.format(start=5555).replace(" S ", " Z "),
    ],
    ids=["gone", "another process", "zombie"],
)
def test_a_supervisor_that_is_gone_has_failed(proof: str) -> None:
    """Its last word is no state: the rank has failed, is not ready and has no process."""
    seen = supervised(SAID, proof)

    assert (seen.active, seen.ready, seen.pid) == ("failed", False, 0)
    assert seen.status == "its supervisor is gone"


@pytest.mark.parametrize("active", ["failed", "inactive"])
def test_a_supervisor_that_said_how_it_ended_is_believed(active: str) -> None:
    """A rank that ended by its supervisor's own word needs no living process."""
    seen = supervised(SAID | {"active": active, "exit_status": 78}, "")

    assert (seen.active, seen.ready, seen.pid, seen.exit_status) == (active, False, 0, 78)


@pytest.mark.parametrize("said", [{}, [], {**SAID, "rank": "3"}, {**SAID, "active": "odd"}])
def test_a_supervisor_file_that_makes_no_sense_is_a_failure(said: object) -> None:
    """It is reported as a failed rank, not passed over."""
    assert supervised(said, "").active == "failed"


def test_what_runs_goes_before_what_another_launch_left_behind() -> None:
    """A rank known to two launches is shown by the one that runs it."""
    text = f"supervisor|/d/2.supervisor\njson|{json.dumps(SAID)}\nproc|{PROC.format(start=5555)}\n"

    seen = {rank.rank: rank for rank in read(system_units=SHOWN, supervisors=text)}

    assert (seen[2].active, seen[2].pid) == ("active", 101)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rlx-demo@12.service", 12),
        ("/run/rlx/demo/0.state", 0),
        ("3.supervisor", 3),
        ("rlx-demo@x.service", None),
        ("rlx-demo.service", None),
        ("rlx-demo@1.service.d", None),
    ],
)
def test_a_rank_is_read_from_a_name(name: str, rank: int | None) -> None:
    """Only an instance's number counts."""
    assert rank_of(name) == rank


@pytest.mark.parametrize("name", ["system units", "supervisors"])
def test_a_host_that_does_not_say_what_runs_fails(name: str) -> None:
    """Nobody may start beside what might be running."""
    given = {other: Answer("") for other in {"system units", "supervisors"} - {name}}

    with pytest.raises(Unanswered, match=name):
        units.parse(Answers(given, unanswered=(name,)))


@pytest.mark.parametrize(
    ("launch", "text"),
    [
        (Launch.SYSTEMD, SHOWN),
        (Launch.SYSTEMD_USER, SHOWN),
        (Launch.PROCESS, f"supervisor|/d/3.supervisor\nalive|\njson|{json.dumps(SAID)}\n"),
    ],
)
def test_of_one_launch_only_its_own_questions_count(launch: Launch, text: str) -> None:
    """Less is asked of a host while its ranks start, and what was not asked is not missed."""
    own, *others = units.questions(Enquiry("demo"), launch)
    assert len([own, *others]) < len(units.questions(Enquiry("demo")))

    assert units.parse(Answers({own.name: Answer(text)}), launch)
    with pytest.raises(Unanswered):
        units.parse(Answers({}), launch)


def test_under_the_users_units_a_node_says_how_it_is_too() -> None:
    """Its file lies where a supervisor's ranks have theirs, and is asked for with the units."""
    names = [one.name for one in units.questions(Enquiry("demo"), Launch.SYSTEMD_USER)]
    answers = {one: Answer("") for one in names}
    answers["user units"] = Answer(SHOWN)
    answers["supervisors"] = Answer(
        'state|/run/user/7/rlx/demo/2.state\njson|{"phase": "joining"}\n'
    )
    seen = {one.rank: one for one in units.parse(Answers(answers), Launch.SYSTEMD_USER)}

    assert seen[2].node == {"phase": "joining"}
