"""A controller that is killed: the hosts come to one release by themselves, old or new.

Once in each stage; `make soak` kills at 50 seeded instants, on hosts (tests/fleet).
"""

import pytest

from tests.cli.desk import Desk, until
from tests.cli.slow import STAGES, Slow

REVERT_S = 12
TIMES = f"join_timeout = 10\nrevert_after = {REVERT_S}\n"
# After the timer a group has to stop and to form anew, on a machine that others use too.
SETTLED_S = REVERT_S + 60.0


def write(desk: Desk, number: int) -> None:
    desk.pair(job=f"{TIMES}env = {{ NUMBER = '{number}' }}\n")


def is_settled(desk: Desk) -> bool:
    """Tell whether nobody holds or waits for anything, and the ranks are one group."""
    home = desk.data / "rlx/demo"
    if (home / "lock").exists() or (home / ".revert").exists():
        return False
    ranks = desk.status()["ranks"]
    release = {rank["release"] for rank in ranks} | {
        record["release"] for record in desk.records().values()
    }
    digests = {rank["digest"] for rank in ranks}
    return all(rank["joined"] for rank in ranks) and len(release) == len(digests) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_a_controller_killed_in_a_stage_leaves_one_release(desk: Desk, stage: str) -> None:
    """No controller any more: after revert_after one release stands, with equal digests."""
    write(desk, 1)
    desk.good("apply", "--yes")
    write(desk, 2)
    with Slow(desk, stage) as slow:
        slow.begun().kill()
        until(lambda: is_settled(desk), SETTLED_S)
    assert desk.good("apply", "--yes").code == 0
    assert desk.status()["joined"] == 2


def test_a_controller_killed_in_the_join_leaves_one_release(desk: Desk) -> None:
    """The hosts hold, and nobody says a word any more."""
    write(desk, 1)
    first = desk.good("apply", "--yes", "--json").document["release"]
    write(desk, 2)
    process = desk.start("apply", "--yes")
    current = desk.data / "rlx/demo/current"
    until(lambda: current.resolve().name != first)
    process.kill()

    until(lambda: is_settled(desk), SETTLED_S)
