"""A controller that is killed on hosts of three releases: they come to one release by themselves.

The short form kills once in each stage, on this machine alone, in tests/cli; `make soak` kills at
50 instants that a seed draws, at least six in each stage, and prints what docs/soak.md quotes.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.fleet.harness.fleet import Fleet
from tests.fleet.trial import STAGES, Trial, kill, stage_of, tell

SEED = 7
# In all; and in each of the groups that share them, as most of a kill is waiting for timers.
KILLS = 50
GROUPS = 2
IN_EACH = 3

pytestmark = pytest.mark.timeout(400, func_only=True)


@pytest.fixture
def trial(fleet: Fleet) -> Iterator[Trial]:
    with fleet.lend(3) as hosts:
        yield Trial(fleet, hosts, "killed")


class Lengths:
    """How long each stage takes here, learned from the runs so far."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)

    def learn(self, trial: Trial) -> None:
        """Take in a whole run."""
        trial.write()
        run, began = trial.events()[-1]["run"], time.monotonic()
        process = trial.start()
        stage, since = "survey", began
        while process.poll() is None:
            now = stage_of(trial.since(run))
            if now != stage:
                if stage in self.seconds:
                    self.seconds[stage] = time.monotonic() - since
                stage, since = now, time.monotonic()
            time.sleep(0.002)
        process.communicate()


def killed_in(trial: Trial, wanted: str, after: float) -> str:
    """Start an apply, kill it so many seconds into a stage; return the stage that it was in."""
    run = trial.events()[-1]["run"]
    process = trial.start()
    trial.await_stage(run, wanted, process)
    time.sleep(after)
    kill(process)
    return stage_of(trial.since(run))


def enough(killed: Counter[str]) -> bool:
    """Say whether a group has had its share of kills, and of those in each stage."""
    share = KILLS // GROUPS
    return killed.total() - killed["end"] >= share and all(killed[one] >= IN_EACH for one in STAGES)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("group", range(GROUPS))
def test_a_controller_killed_at_any_instant_leaves_one_release(
    trial: Trial, group: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """No controller any more: one release id on all hosts, the group READY with equal digests."""
    lengths = Lengths()
    lengths.learn(trial)
    draw = random.Random(SEED + group)  # noqa: S311 - the same instants in every run
    killed: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    # One that came too late, after the end, counts for nothing.
    while not enough(killed):
        wanted = STAGES[killed.total() % len(STAGES)]
        old = trial.standings()[0].current
        trial.write()
        after = draw.uniform(0, 0.8 * lengths.seconds[wanted])
        stage = killed_in(trial, wanted, after)
        stood = trial.settle()
        killed[stage] += 1
        outcomes["old" if stood == old else "new"] += 1
        tell(capsys, f"{killed.total():3} {wanted} + {after:.3f} s: killed in {stage}, {stood}")
        trial.finish()
    tell(capsys, f"group {group}: {killed.total()} kills: {dict(killed)}; then {dict(outcomes)}")
