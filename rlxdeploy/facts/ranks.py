"""Whether a rank has joined, is finished or has failed, from how its instance was seen."""

from collections.abc import Mapping
from enum import StrEnum

from rlxdeploy.model.survey import RankSeen

# The exit code of a rank that lost a peer or missed the join: it starts again and comes back.
COMES_BACK = 75

# A process alive this long has got past its imports and its arguments.
ALIVE_S = 5.0


# What systemd says, and our supervisor like it, where a program was not even begun.
UNBEGUN: Mapping[int, str] = {
    200: "its workdir is not there or cannot be entered",
    203: "its program cannot be run",
    204: "there is not enough memory for it",
    206: "its standard output cannot be set up",
    216: "its group does not exist, or may not be taken",
    217: "its user does not exist",
    218: "its capabilities cannot be dropped",
    226: 'its mount namespace cannot be made: write `hardening = "off"` to see whether it is that',
}


class RankState(StrEnum):
    """How far a rank is."""

    WAITING = "waiting"
    READY = "ready"
    FINISHED = "finished"
    FAILED = "failed"


def has_finished(seen: RankSeen) -> bool:
    """Tell whether its process has ended well by itself; a rank that was stopped is inactive."""
    return seen.active == "exited" and seen.exit_status == 0


def state_of(seen: RankSeen, *, notify: bool, unit: bool, alive: float) -> RankState:
    """Return how far the rank is; *alive* is for how many seconds this process has been seen.

    A unit that does not notify is called ready by systemd at once; a supervisor waits by itself.
    """
    if seen.active in ("exited", "inactive") and seen.exit_status == 0:
        return RankState.FINISHED
    if seen.active == "failed" or seen.exit_status not in (None, 0, COMES_BACK):
        return RankState.FAILED
    too_young = unit and not notify and alive < ALIVE_S
    return RankState.READY if seen.ready and not too_young else RankState.WAITING
