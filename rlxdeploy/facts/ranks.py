"""Whether a rank has joined, is finished or has failed, from how its instance was seen."""

from enum import StrEnum

from rlxdeploy.model.survey import RankSeen

# The exit code of a rank that lost a peer or missed the join: it starts again and comes back.
COMES_BACK = 75

# A process alive this long has got past its imports and its arguments.
ALIVE_S = 5.0


class RankState(StrEnum):
    """How far a rank is."""

    WAITING = "waiting"
    READY = "ready"
    FINISHED = "finished"
    FAILED = "failed"


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
