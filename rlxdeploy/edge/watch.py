"""The join wait: until all ranks are READY, one has failed, two cannot meet, or time is up."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from rlxdeploy.edge.logs import LogQuery, read_log
from rlxdeploy.edge.rankfeed import FeedLimits, RankFeed
from rlxdeploy.edge.session import OpenSession
from rlxdeploy.errors import HostError
from rlxdeploy.facts.apart import Pair, still_apart
from rlxdeploy.facts.ranks import UNBEGUN, RankState, state_of
from rlxdeploy.facts.views import blindness
from rlxdeploy.model.plan import Plan, RankRow
from rlxdeploy.model.survey import RankSeen
from rlxdeploy.model.vocabulary import Launch

# So many that cannot be reached are named; the others are as a rule behind the same wall.
_TOLD = 3

# Hears of each rank whose state has changed; called from the waiting thread.
Tell = Callable[[RankRow, RankState, RankSeen], None]


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """Seconds, counts and what is asked for: see the fields."""

    # A lost session is opened again after so long, for a host may be back before the deadline.
    again: float = 1.0
    feed: FeedLimits = field(default_factory=FeedLimits)
    log_lines: int = 20
    log_timeout: float = 10.0
    # A failure often takes all ranks down; three logs are what a person reads.
    logs: int = 3
    # Two ranks that are up and have not met for so long will not: a dial that nobody answers takes
    # three seconds, and even one that is lost on the way twice is answered within them.
    apart: float = 10.0


@dataclass(frozen=True, slots=True)
class Blamed:
    """One rank that is not as it should be, why, and the last lines of its log."""

    rank: int
    host: str
    address: str
    why: str
    log: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f" at {self.address}" if self.address else ""
        return f"rank {self.rank} on {self.host}{where}: {self.why}"


@dataclass(frozen=True, slots=True)
class Watched:
    """How the wait ended: *ok* if all ranks are READY or finished, else *blamed* names the others.

    *ranks* is how each was last seen; *late* tells that the time was up.
    """

    ok: bool
    ranks: Mapping[int, RankSeen]
    blamed: tuple[Blamed, ...] = ()
    late: bool = False
    waited: float = 0.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What is waited for: READY, or with *finished* the end of every rank.

    *timeout* None is the plan's join_timeout.  *before* is each rank's start (`RankSeen.since`) as
    surveyed before GO: a unit seen with that start has not been started yet.
    """

    finished: bool = False
    timeout: float | None = None
    before: Mapping[int, float] = field(default_factory=dict)


def watch(
    plan: Plan,
    open_session: OpenSession,
    wish: Wish | None = None,
    limits: WatchLimits | None = None,
    tell: Tell = lambda _row, _state, _seen: None,
) -> Watched:
    """Wait for the managed ranks of *plan* and return how that ended; never raises HostError."""
    return _Watch(plan, open_session, wish or Wish(), limits or WatchLimits(), tell).run()


@dataclass(slots=True)
class _Watch:
    plan: Plan
    open_session: OpenSession
    wish: Wish
    limits: WatchLimits
    tell: Tell
    _over: threading.Event = field(default_factory=threading.Event)
    # READY is said behind a barrier: where one rank has said it, the others are about to.
    _soon: threading.Event = field(default_factory=threading.Event)
    _heard: "queue.SimpleQueue[tuple[str, tuple[RankSeen, ...] | BaseException]]" = field(
        default_factory=queue.SimpleQueue
    )
    _seen: dict[int, RankSeen] = field(default_factory=dict)
    _states: dict[int, RankState] = field(default_factory=dict)
    _lost: dict[str, str] = field(default_factory=dict)
    _first_alive: dict[tuple[int, int], float] = field(default_factory=dict)
    _apart: Mapping[Pair, float] = field(default_factory=dict)

    def run(self) -> Watched:
        start = time.monotonic()
        timeout = self.plan.join_timeout if self.wish.timeout is None else self.wish.timeout
        rows = [row for row in self.plan.ranks if row.managed and row.host in self.plan.hosts]
        readers = [self._reader(name) for name in {row.host: None for row in rows}]
        try:
            for reader in readers:
                reader.start()
            late = self._wait(rows, start + timeout)
        finally:
            self._over.set()
            for reader in readers:
                reader.join()
        blamed = () if self._all_well(rows) else self._blame(rows, late=late, timeout=timeout)
        return Watched(not blamed, dict(self._seen), blamed, late, time.monotonic() - start)

    def _wait(self, rows: list[RankRow], deadline: float) -> bool:
        """Take in what the readers hear; return whether the time was up."""
        while not (self._all_well(rows) or self._any_failed(rows) or self._cut_off()):
            try:
                host, said = self._heard.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return True
            if isinstance(said, HostError):
                self._lost[host] = said.why
            elif isinstance(said, BaseException):
                raise said
            else:
                self._lost.pop(host, None)
                self._take(rows, host, said)
            self._apart = still_apart(self._apart, self._joining(rows), time.monotonic())
        return False

    def _take(self, rows: list[RankRow], host: str, said: tuple[RankSeen, ...]) -> None:
        by_rank = {seen.rank: seen for seen in said}
        for row in rows:
            if row.host != host or (seen := by_rank.get(row.rank)) is None:
                continue
            self._seen[row.rank] = seen
            state = self._state(row, seen)
            if state is not self._states.get(row.rank):
                self._states[row.rank] = state
                if state is RankState.READY:
                    self._soon.set()
                self.tell(row, state, seen)

    def _state(self, row: RankRow, seen: RankSeen) -> RankState:
        unit = row.launch != Launch.PROCESS
        if unit and seen.since and seen.since == self.wish.before.get(row.rank):
            return RankState.WAITING
        now = time.monotonic()
        alive = now - self._first_alive.setdefault((row.rank, seen.pid), now)
        state = state_of(seen, notify=self.plan.join == "notify", unit=unit, alive=alive)
        blind = state is RankState.READY and blindness(row.device, seen)
        return RankState.FAILED if blind else state

    def _all_well(self, rows: list[RankRow]) -> bool:
        good = {RankState.FINISHED} if self.wish.finished else {RankState.READY, RankState.FINISHED}
        return all(self._states.get(row.rank) in good for row in rows)

    def _any_failed(self, rows: list[RankRow]) -> bool:
        failed = [self._states.get(row.rank) is RankState.FAILED for row in rows]
        # Whoever waits for the end of all wants all their exit codes.
        return all(failed) if self.wish.finished else any(failed)

    def _joining(self, rows: list[RankRow]) -> Iterator[RankSeen]:
        """Yield how those were seen that are not up yet, where what was seen is still news."""
        for row in rows:
            if row.host not in self._lost and self._states.get(row.rank) is RankState.WAITING:
                yield self._seen[row.rank]

    def _cut_off(self) -> frozenset[int]:
        """Return the ranks that dial others in vain for too long."""
        if self.wish.finished:
            return frozenset()
        since = time.monotonic() - self.limits.apart
        return frozenset(pair.dialler for pair, at in self._apart.items() if at <= since)

    def _blame(self, rows: list[RankRow], *, late: bool, timeout: float) -> tuple[Blamed, ...]:
        bad = [row for row in rows if self._states.get(row.rank) is RankState.FAILED]
        if cut_off := self._cut_off():
            bad += [row for row in rows if row.rank in cut_off]
        elif late or not bad:
            well = {RankState.READY, RankState.FINISHED}
            bad += [r for r in rows if r not in bad and self._states.get(r.rank) not in well]
        return tuple(
            Blamed(
                row.rank,
                row.host,
                row.address,
                self._why(row, timeout),
                self._log(row) if number < self.limits.logs else (),
            )
            for number, row in enumerate(bad)
        )

    def _why(self, row: RankRow, timeout: float) -> str:
        if row.host in self._lost:
            return f"its host does not answer: {self._lost[row.host]}"
        if (seen := self._seen.get(row.rank)) is None:
            return f"nothing was seen of it in {timeout:g} s"
        blind = blindness(row.device, seen) if seen.ready else ""
        if told := blind or self._vainly(row.rank):
            return told
        status = f" ({seen.status})" if seen.status else ""
        if self._states.get(row.rank) is not RankState.FAILED:
            return f"{seen.active}, not READY after {timeout:g} s{status}"
        if seen.exit_status is None:
            return f"failed{status}"
        # A supervisor's status says no more than the number where the process just ended.
        status = "" if seen.status == f"exit {seen.exit_status}" else status
        if seen.exit_status in UNBEGUN:
            status = f" (as a rule: {UNBEGUN[seen.exit_status]})"
        return f"ended with exit {seen.exit_status}{status}"

    def _vainly(self, rank: int) -> str:
        """Return whom the rank dials in vain, and why, "" for nobody."""
        hosts = {row.rank: row.host for row in self.plan.ranks}
        told = [
            f"rank {pair.listener} on {hosts[pair.listener]}, which is up: {pair.why}"
            for pair in self._apart
            if pair.dialler == rank
        ]
        more = f" and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
        return f"it cannot reach {'; nor '.join(told[:_TOLD])}{more}" if told else ""

    def _log(self, row: RankRow) -> tuple[str, ...]:
        part = self.plan.hosts[row.host]
        asked = LogQuery(part.tree, part.launch, row.rank, self.limits.log_lines)
        try:
            return read_log(self.open_session, part.host, asked, self.limits.log_timeout)
        except HostError as error:
            return (f"(the log could not be read: {error.why})",)

    def _reader(self, name: str) -> threading.Thread:
        return threading.Thread(target=self._read, args=(name,), name=f"watch {name}")

    def _read(self, name: str) -> None:
        feed = RankFeed(self.plan.job, self.plan.hosts[name], self.open_session, self.limits.feed)
        try:
            while not self._over.is_set():
                try:
                    for ranks in feed.looks(self._over, self._soon):
                        self._heard.put((name, ranks))
                except HostError as error:
                    self._heard.put((name, error))
                self._over.wait(self.limits.again)
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            self._heard.put((name, error))
