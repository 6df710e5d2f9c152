"""A connection that is cut after any byte: the host is on the old release or on the new one.

The short form cuts at every border between two phases; `make soak` cuts at 200 offsets besides.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rlxdeploy.edge.apply import Back, Carried, Manner, Patience, carried_out
from rlxdeploy.edge.local import LocalSession
from rlxdeploy.edge.script import compose
from rlxdeploy.edge.session import SessionLost, framed
from rlxdeploy.errors import Unreachable
from rlxdeploy.model.files import RemoteFiles
from rlxdeploy.model.host import Host
from rlxdeploy.model.plan import Plan, WayBack
from tests.edge.deployment import QUICK, Lab, alive
from tests.edge.test_back import NEVER_S, until, with_way_back

SEED = 20_261
SOAK_CUTS = 200
HASTY = Patience(stage=20, go=40, hold=60, bye=2)
WORDS = b"GO\n" + b"CONFIRM\n" + b"BYE\n"


class CutSession(LocalSession):
    """A session whose wire is cut after *left* bytes to the host; the shell there lives on."""

    def __init__(self, host: Host, left: int) -> None:
        super().__init__(host)
        self._left, self._cut = left, False

    def send(self, data: bytes, deadline: float) -> None:
        if len(data) <= self._left:
            self._left -= len(data)
            super().send(data, deadline)
            return
        passed, self._left = data[: self._left], 0
        if passed and not self._cut:
            super().send(passed, deadline)
        self._hang_up()
        raise SessionLost(self.host.name, "send", "the wire is cut")

    def read(self, deadline: float) -> bytes:
        return b"" if self._cut else super().read(deadline)

    def close(self) -> int | None:
        """Close our ends alone: nothing at the far end is killed by a cut."""
        if not self._cut:
            self._hang_up()
        return None

    def _hang_up(self) -> None:
        self._cut = True
        self._waiting.close()
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            assert pipe is not None
            pipe.close()

    def ended(self) -> None:
        """Wait for the shell, so that nothing of it is left to the next cut."""
        self._child.wait(60)


@dataclass
class Wire:
    """A job on this machine, its releases counted."""

    lab: Lab
    number: int = 0

    def release(self) -> tuple[str, RemoteFiles, Plan]:
        name = f"r{self.number}"
        files = self.lab.files(name)
        before = f"r{self.number - 1}" if self.number else ""
        back = WayBack(NEVER_S, (0,), "", notify=False, release=before, again=(0,))
        return name, files, with_way_back(self.lab.apply_plan(files), back)

    def length(self) -> int:
        _, files, plan = self.release()
        # As long as with QUICK: the script has their numbers in it.
        terms = Manner("ann", patience=HASTY).terms()
        script = compose(plan.hosts[self.lab.name], files.hosts[self.lab.name], terms)
        return len(framed(script.text)) + len(script.payload)

    def apply(self, left: int | None = None) -> None:
        """Apply and confirm; with *left* the wire is cut, and what then happens is not asked."""
        _, files, plan = self.release()
        opened: list[CutSession] = []

        def opens(host: Host, deadline: float) -> LocalSession:
            if left is None:
                return self.lab.open(host, deadline)
            opened.append(CutSession(host, left))
            return opened[-1]

        manner = Manner("ann", patience=QUICK if left is None else HASTY)
        with carried_out(plan, files, opens, manner) as carried:
            if carried.went and not carried.outcomes.failed:
                failed = carried.confirm().failed
                assert left is not None or not failed
            assert left is not None or not carried.outcomes.failed
        for session in opened:
            session.ended()

    def current(self) -> str:
        return (self.lab.home / "current").resolve().name

    def releases(self) -> set[str]:
        return {path.name for path in (self.lab.home / "releases").iterdir()}

    def survives(self, left: int) -> None:
        """Cut an apply of the next release, see old or new, and have the next apply finish."""
        old = f"r{self.number}"
        self.number += 1
        new = f"r{self.number}"
        before = self.releases()
        self.apply(left)
        until(lambda: not (self.lab.home / "lock").exists())
        assert self.current() in (old, new), left
        if self.current() == old:
            assert self.releases() == before, left
        else:
            assert {new} <= self.releases() <= {*before, new}, left
        until(lambda: bool(self.lab.record()["pid"]) and alive(self.lab.record()["pid"]))
        assert self.lab.record()["release"] == self.current()
        self.apply()
        assert self.current() == new
        assert not (self.lab.home / ".revert").exists()


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    (tmp_path / "runtime").mkdir()
    made = Wire(Lab(tmp_path))
    made.apply()
    yield made
    made.lab.carry_out(made.lab.destroy_plan())


# From the length of the script with its payload: a byte before, at and after each border.
BORDERS: dict[str, Callable[[int], int]] = {
    "at once": lambda _length: 0,
    "in the script": lambda _length: 10_000,
    "in the payload": lambda length: length // 2,
    "before the last byte": lambda length: length - 1,
    "before GO": lambda length: length,
    "in GO": lambda length: length + 2,
    "after GO": lambda length: length + 3,
    "in CONFIRM": lambda length: length + 7,
    "after CONFIRM": lambda length: length + 11,
}


@pytest.mark.parametrize("border", BORDERS.values(), ids=BORDERS)
def test_a_cut_at_a_border_leaves_old_or_new(wire: Wire, border: Callable[[int], int]) -> None:
    """The release set is one or the other, its rank runs, and the next apply finishes."""
    wire.survives(border(wire.length()))


@pytest.mark.soak
def test_a_cut_anywhere_leaves_old_or_new(wire: Wire) -> None:
    """Offsets drawn by a seed over the whole exchange."""
    draw = random.Random(SEED)  # noqa: S311 - the same offsets in every run
    for _ in range(SOAK_CUTS):
        wire.survives(draw.randrange(wire.length() + len(WORDS)))


class LostSession(CutSession):
    """A session that is cut as soon as its last byte has passed, before any answer to it."""

    def read(self, deadline: float) -> bytes:
        if not self._left and not self._cut:
            self._hang_up()
        return super().read(deadline)


class DeadSession(LostSession):
    """A session whose wire is dead at our end alone: nobody tells the shell, which waits on."""

    def _hang_up(self) -> None:
        self._cut = True

    def ended(self) -> None:
        """Wait for the shell while its stdin is still open, then let go of it."""
        super().ended()
        super()._hang_up()


@dataclass
class Broken:
    """The first session breaks *passed* bytes after its script; whoever comes again is let in."""

    wire: Wire
    passed: int
    kind: type[LostSession] = LostSession
    reachable: bool = True
    again: int = 0
    first: CutSession | None = None

    def __call__(self, host: Host, deadline: float) -> LocalSession:
        if self.first is None:
            self.first = self.kind(host, self.wire.length() + self.passed)
            return self.first
        self.again += 1
        if not self.reachable:
            raise Unreachable(host.name, "connect", "no route")
        return self.wire.lab.open(host, deadline)

    @contextmanager
    def applied(self, told: list[str], again: float = 30.0) -> Iterator[Carried]:
        """Carry the next release out; at the end the first shell has ended by itself."""
        self.wire.number += 1
        _, files, plan = self.wire.release()
        patience = replace(QUICK, again=again)
        manner = Manner("ann", patience=patience, tell=lambda _host, what: told.append(what))
        with carried_out(plan, files, self, manner) as carried:
            assert not carried.outcomes.failed
            yield carried
        assert self.first is not None
        self.first.ended()


# In bytes behind the script: GO takes three of them, CONFIRM eight.
LOST = {"before the steps were told": 3, "in the word": 3 + 4, "after the word": 3 + 8}


@pytest.mark.parametrize("kind", [LostSession, DeadSession], ids=["told", "not told"])
@pytest.mark.parametrize("passed", LOST.values(), ids=LOST)
def test_a_session_lost_after_go_is_taken_up(
    wire: Wire, passed: int, kind: type[LostSession]
) -> None:
    """One broken connection undoes nothing, whether or not the host knows that it broke."""
    told: list[str] = []
    broken = Broken(wire, passed, kind)
    with broken.applied(told) as carried:
        assert carried.confirm().failed == {}

    assert broken.again == 1
    assert len(told) == len(set(told)), "no step is told twice"
    assert {"told to go", "changed", "confirmed"} <= set(told)
    assert wire.current() == f"r{wire.number}"
    assert not (wire.lab.home / ".revert").exists()
    assert not (wire.lab.home / "lock").exists()


@pytest.mark.parametrize("passed", [3, 3 + 4, 3 + 7], ids=["before", "in", "after"])
def test_a_host_goes_back_over_another_session(wire: Wire, passed: int) -> None:
    """Wherever REVERT is cut off, the host goes back, and says what it has."""
    before = wire.current()
    broken = Broken(wire, passed)
    with broken.applied([]) as carried:
        assert carried.revert().required()[wire.lab.name] == Back(before, (0,))

    assert broken.again == 1
    assert wire.current() == wire.lab.record()["release"] == before


def test_a_host_that_has_gone_back_by_itself_is_not_confirmed(wire: Wire) -> None:
    """Nothing is left to take up, and what stands there is told."""
    before = wire.current()
    wire.number += 1
    _, files, plan = wire.release()
    soon = with_way_back(plan, WayBack(1, (0,), "", notify=False, release=before, again=(0,)))
    with carried_out(soon, files, wire.lab.open, Manner("ann", patience=QUICK)) as carried:
        until(lambda: not (wire.lab.home / ".revert").exists())
        (error,) = carried.confirm().failed.values()

    assert f"the host has gone back to release {before} by itself" in str(error)
    assert wire.current() == before


def test_a_host_that_is_not_reached_again_is_given_up(wire: Wire) -> None:
    """At the deadline the reason is why the session was lost; the host decides by itself."""
    broken = Broken(wire, 3 + 4, reachable=False)
    told: list[str] = []
    with broken.applied(told, again=1.0) as carried:
        (error,) = carried.confirm().failed.values()

    assert broken.again > 1
    assert "the wire is cut" in str(error)
    assert "confirmed" not in told
    assert (wire.lab.home / ".revert").exists()
