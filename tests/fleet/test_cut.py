"""A connection to a real sshd that breaks after any byte: old or new, never anything between.

The short form cuts at the border of each phase; `make soak` cuts at 200 offsets, those and the
bytes beside them among them, and prints what docs/soak.md quotes.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.fleet.harness import cutter
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.trial import Trial, kill, standing, tell

SEED = 20_261
SOAK_CUTS = 200
# The soak's cuts are shared out to so many pairs of hosts: an apply that was cut waits for timers.
PAIRS = 4
# Enough for every phase to come up; the borders are those of the journal's events.
SHORT_CUTS = 3
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


class Cuts:
    """A group of two hosts, to one of which the wire may break."""

    def __init__(self, fleet: Fleet, hosts: list[Host]) -> None:
        self.trial, self.host = Trial(fleet, hosts, "cuts"), hosts[0]
        self.wire = Wire(fleet, self.host)

    def measure(self) -> tuple[int, list[int]]:
        """Return how many bytes an apply takes, and how many had passed at each event of it."""
        self.trial.write()
        self.wire.order("pass")
        self.trial.finish()
        trace = self.wire.order("trace")
        assert isinstance(trace, list)
        moments = [event["at"] for event in self.trial.events()]
        borders = {max((n for at, n in trace if at <= moment), default=0) for moment in moments}
        return trace[-1][1], sorted(borders)

    def survive(self, after: int) -> str:
        """Cut an apply after so many bytes; return which release then stood: old or new.

        One that ends before so many have passed is whole.
        """
        old = self.trial.standings()[0]
        self.trial.write()
        self.wire.order(f"cut {after}")
        self.trial.start().communicate(timeout=APPLY_S)
        was_cut = self.wire.order("pass")
        stood = self.trial.settle()
        now = standing(self.host, self.trial.desk.job)
        outcome = "old" if stood == old.current else "new"
        if outcome == "old":
            assert now.releases == old.releases, after
        else:
            assert now.releases - old.releases == {stood}, after
        assert (self.trial.finish() == stood) == (outcome == "new"), after
        return outcome if was_cut else "whole"


@pytest.fixture
def cuts(fleet: Fleet) -> Iterator[Cuts]:
    with fleet.lend(2) as hosts:
        made = Cuts(fleet, hosts)
        yield made
        made.wire.close()


def test_a_cut_at_a_border_leaves_old_or_new(cuts: Cuts) -> None:
    """Whatever had been said: one release on every host, one group, and the next apply finishes."""
    length, borders = cuts.measure()
    chosen = random.Random(SEED).sample(borders, min(SHORT_CUTS - 1, len(borders)))  # noqa: S311 - the same in every run
    outcomes = [cuts.survive(after) for after in [*chosen, length // 2]]
    assert "old" in outcomes
    assert outcomes[-1] != "whole"


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("pair", range(PAIRS))
def test_a_cut_anywhere_leaves_old_or_new(
    cuts: Cuts, pair: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every border with the bytes beside it, and offsets drawn by a seed over all the rest."""
    length, borders = cuts.measure()
    draw = random.Random(SEED + pair)  # noqa: S311 - the same offsets in every run
    offsets = [max(1, at + beside) for at in borders for beside in (-1, 0, 1)]
    outcomes = Counter(cuts.survive(after) for after in offsets[pair::PAIRS])
    while outcomes["old"] + outcomes["new"] < SOAK_CUTS // PAIRS:
        outcomes[cuts.survive(draw.randrange(1, length))] += 1
    borders_told = f"pair {pair}: {length} bytes with {len(borders)} borders"
    tell(capsys, f"{borders_told}, at least {SOAK_CUTS // PAIRS} cuts: {dict(outcomes)}")
