"""A connection to a real sshd that breaks after any byte: old or new, never anything between.

The short form cuts once in each stage of an apply; `make soak` cuts 200 times, by turns in each
stage, and prints what docs/soak.md quotes.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.fleet.harness import cutter
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.trial import STAGES, Standing, Trial, kill, stage_of, standing, tell

SEED = 20_261
SOAK_CUTS = 200
# The soak's cuts are shared out to so many pairs of hosts: an apply that was cut waits for timers.
PAIRS = 4
SHARE = SOAK_CUTS // PAIRS
# Each pair alone has to have these, so that all of them together do.
IN_EACH = 3
# The longest way into a stage, as a power of two; a stage ends where the next begins.
FURTHEST = 16
# The short form cuts at the borders, where a wire is often just made again, and once amid staging.
SHORT = dict.fromkeys(STAGES, 0) | {"stage": 20_000}
# So often may an apply be over, or in its next stage, before the wire is cut.
TRIES = 4
APPLY_S = 180.0

pytestmark = pytest.mark.timeout(400, func_only=True)


class Wire:
    """The way to one host, through a proxy that cuts where it is told to."""

    def __init__(self, fleet: Fleet, host: Host) -> None:
        argv = (sys.executable, cutter.__file__, host.address, "22")
        self.process = fleet.spawn(argv)
        assert self.process.stdout is not None
        port = int(self.process.stdout.readline())
        self._config = fleet.home / ".ssh/config"
        self._before = self._config.read_text()
        way = f"HostName 127.0.0.1\n  Port {port}\n  HostKeyAlias {host.address}\n"
        self._config.write_text(f"Host {host.name}\n  {way}Host *\n{self._before}")

    def order(self, words: str) -> object:
        """Have the proxy do as told, and return its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{words}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        """Reach the host directly again."""
        self._config.write_text(self._before)
        kill(self.process)


@dataclass(frozen=True)
class Cut:
    """What came of one: the *stage* it came in, after how many bytes, and what stood then.

    Of an apply that was over before so many bytes had passed the stage is "".
    """

    stage: str
    at: int
    outcome: str


class Cuts:
    """A group of two hosts, to one of which the wire may break."""

    def __init__(self, fleet: Fleet, hosts: list[Host]) -> None:
        self.trial, self.host = Trial(fleet, hosts, "cuts"), hosts[0]
        self.wire = Wire(fleet, self.host)

    def survive(self, wanted: str, after: int) -> Cut:
        """Cut an apply so many bytes into a stage; one release stands then, the old or the new.

        And the next apply finishes.  Where the cut came is read off the journal: the events that
        were in it by then.
        """
        old, run = self.trial.standings()[0], self.trial.events()[-1]["run"]
        self.trial.write()
        self.wire.order("pass")
        process = self.trial.start()
        self.trial.await_stage(run, wanted, process)
        self.wire.order(f"cut {after}")
        process.communicate(timeout=APPLY_S)
        cuts = self.wire.order("pass")
        assert isinstance(cuts, list)
        moment, at = cuts[0] if cuts else (0.0, 0)
        stage = stage_of([one for one in self.trial.since(run) if one["at"] <= moment])
        return Cut(stage if cuts else "", at, self._outcome(old))

    def _outcome(self, old: Standing) -> str:
        stood = self.trial.settle()
        now = standing(self.host, self.trial.desk.job)
        outcome = "old" if stood == old.current else "new"
        assert now.releases - old.releases == ({stood} if outcome == "new" else set())
        assert outcome == "new" or now.releases == old.releases
        assert (self.trial.finish() == stood) == (outcome == "new")
        return outcome


@pytest.fixture
def cuts(fleet: Fleet) -> Iterator[Cuts]:
    with fleet.lend(2) as hosts:
        made = Cuts(fleet, hosts)
        yield made
        made.wire.close()


def test_a_cut_in_each_stage_leaves_old_or_new(cuts: Cuts) -> None:
    """The journal tells that it was there: one release on every host, one group.

    What was half staged is undone; and the next apply finishes each time.
    """
    outcomes = {}
    for wanted, after in SHORT.items():
        # On a busy machine most of a stage may be over before the journal is read: then sooner.
        tried = (cuts.survive(wanted, after >> 4 * turn) for turn in range(TRIES))
        cut = next((one for one in tried if one.stage == wanted), None)
        assert cut is not None, f"no cut came in {wanted}"
        outcomes[wanted] = cut.outcome
    assert outcomes["stage"] == "old", outcomes


def enough(came: Counter[str]) -> bool:
    """Say whether a pair has had its share of cuts, and of those in each stage."""
    return came.total() >= SHARE and all(came[one] >= IN_EACH for one in STAGES)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("pair", range(PAIRS))
def test_a_cut_anywhere_leaves_old_or_new(
    cuts: Cuts, pair: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each border first, then bytes drawn by a seed behind each; the journal tells where it was."""
    draw = random.Random(SEED + pair)  # noqa: S311 - the same draws in every run
    came: Counter[str] = Counter()
    outcomes: Counter[tuple[str, str]] = Counter()
    for number in range(TRIES * SHARE):
        wanted = STAGES[number % len(STAGES)]
        after = 0 if number < len(STAGES) else round(2 ** draw.uniform(0, FURTHEST))
        cut = cuts.survive(wanted, after)
        tell(capsys, f"{number:3} {wanted} + {after} bytes: {cut}")
        # Neither one that came too late, nor one after the last word, counts.
        came.update([cut.stage] if cut.stage in STAGES else [])
        outcomes[cut.stage or "whole", cut.outcome] += 1
        if enough(came):
            break
    for stage in (*STAGES, "end", "whole"):
        row = " | ".join(str(outcomes[stage, one]) for one in ("old", "new"))
        tell(capsys, f"| {pair} | {stage} | {row} |")
    assert enough(came), came
