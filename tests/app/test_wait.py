"""When a wait is over, and with which exit."""

from dataclasses import replace

import pytest

from rlxdeploy.app.look import RankStatus, Status
from rlxdeploy.app.say import Doing
from rlxdeploy.app.wait import doing, has_ended, has_joined, missing, worst_exit
from rlxdeploy.errors import Unreachable


def rank(number: int, state: str, code: int | None = None) -> RankStatus:
    return RankStatus(
        rank=number,
        host="a",
        device="cpu",
        address="",
        state=state,
        joined=state == "active",
        status="",
        uptime=0.0,
        restarts=0,
        epoch="",
        release="",
        digest="",
        pid=0,
        exit_status=code,
    )


def seen(*states: str | tuple[str, int], failed: bool = False) -> Status:
    pairs = [(one, None) if isinstance(one, str) else one for one in states]
    ranks = tuple(rank(number, *pair) for number, pair in enumerate(pairs))
    silent = {"b": Unreachable("b", "survey", "no route")} if failed else {}
    return Status("job", len(ranks), ranks, silent)


CASES = {
    "all in the group": (seen("active", "active"), True, False),
    "one on its way": (seen("active", "activating"), False, False),
    "all ended": (seen(("exited", 0), ("failed", 3)), False, True),
    "one gone with its host's files": (seen("missing", ("inactive", 0)), False, True),
    "one still runs": (seen("active", ("exited", 0)), False, False),
    "nothing deployed": (seen(), False, False),
    "a host that does not answer": (seen("active", failed=True), False, False),
    "the other ended": (seen(("inactive", 0), failed=True), False, False),
}


@pytest.mark.parametrize(("status", "joined", "ended"), CASES.values(), ids=CASES.keys())
def test_a_wait_is_over_when_all_ranks_are_as_wanted(
    status: Status, *, joined: bool, ended: bool
) -> None:
    """Joined or ended, of a group that is deployed and of hosts that answered."""
    assert (has_joined(status), has_ended(status)) == (joined, ended)


LACKING = {
    "a rank of those that are meant": (
        replace(seen("active", "activating"), world=8, whole=False),
        Doing("joined", 1, 2, ("rank 1",)),
    ),
    "a rank": (seen("active", "activating"), Doing("joined", 1, 2, ("rank 1",))),
    "a host": (seen("active", failed=True), Doing("joined", 1, 1, ("an answer of b",))),
    "everything": (seen(), Doing("joined", 0, 0, note="nothing is deployed")),
}


@pytest.mark.parametrize(("status", "said"), LACKING.values(), ids=LACKING.keys())
def test_a_wait_says_what_it_lacks(status: Status, said: Doing) -> None:
    """A rank, the answer of a host, or anything at all to wait for."""
    assert doing(status, finished=False) == said


def test_who_is_missing_depends_on_what_is_waited_for() -> None:
    """A rank that has ended has not joined, and the other way round."""
    status = seen("active", ("inactive", 0), "activating")

    assert missing(status, finished=False) == (1, 2)
    assert missing(status, finished=True) == (0, 2)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (seen(("inactive", 0), ("inactive", 0)), 0),
        (seen(("inactive", 0), ("failed", 65)), 65),
        (seen("missing", ("inactive", 0)), 1),
        (seen(), 1),
    ],
    ids=["all well", "one failed", "one never seen", "none"],
)
def test_the_worst_exit_of_all_ranks_is_the_answer(status: Status, code: int) -> None:
    """Who is not known to have ended well has not."""
    assert worst_exit(status) == code
