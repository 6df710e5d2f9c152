"""Which addresses answer on a port: many TCP connects at once, each with the same patience.

A connect that succeeds is closed at once.  Everything is bounded: the connects in flight by the
descriptors this process may have, the memory by the connects in flight, the time by their number.
"""

import errno
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlxdeploy.edge.descriptors import descriptors
from rlxdeploy.edge.flight import Flight, Try
from rlxdeploy.facts.feed import Feed
from rlxdeploy.facts.sweep import USUAL_NEIGHBOURS, Pace, Sweep, estimate, pace_for

# Begun between two looks at what has arrived, so that an answer is never read late.
_BATCH = 256
_TELL_EVERY_S = 0.1
_LOOK_EVERY_S = 0.05
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """Bounds of one scan; tests build tight ones."""

    # Seconds for one connect; `[discover] timeout_ms`.
    timeout: float = 0.3
    # Tries a routed /16 in five seconds; more would outrun the queues of ordinary routers.
    at_once: int = 4096
    # Descriptors that the rest of the process may want meanwhile.
    spare: int = 64
    # For addresses on our own links; None: as this machine's neighbour table bears.
    pace: Pace | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a scan is, in connects; *left* are the seconds it still takes if nobody answers."""

    done: int
    total: int
    found: int
    left: float


@dataclass(frozen=True, slots=True)
class Scan:
    """Addresses that answer, ascending, each with its ports.

    *failed* counts by errno the connects that came to nothing, those that this machine could not
    even begin among them (`facts.refusals` has words for all).
    *interrupted*: it was stopped before all *total* had been tried; this is what was found so far.
    """

    found: Mapping[str, tuple[int, ...]]
    tried: int
    total: int
    seconds: float
    failed: Mapping[int, int] = field(default_factory=dict)
    interrupted: bool = False


Tell = Callable[[Progress], None]


def scan(
    sweep: Sweep,
    ports: tuple[int, ...] = (22,),
    limits: ScanLimits | None = None,
    tell: Tell | None = None,
    stop: threading.Event | None = None,
) -> Scan:
    """Connect to every address and port of *sweep*.

    *tell* hears first how long it will take, and then how far it is.  Ctrl-C and *stop* end the
    scan early, with what was found.
    """
    limits = limits or ScanLimits()
    pace = limits.pace or own_pace(sweep.version)
    with descriptors(limits.at_once, limits.spare) as at_once, Flight(at_once) as flight:
        run = _Run(Feed(sweep, ports, pace), flight, limits.timeout, tell or (lambda _: None))
        try:
            run.work(stop or threading.Event())
        except KeyboardInterrupt:
            run.interrupted = True
        return run.result()


def own_pace(version: int) -> Pace:
    """Return the pace that the neighbour table of this machine bears now.

    Both numbers are the whole machine's and cannot be read in a container, which gets the usual.
    """
    name = "arp" if version == 4 else "ndisc"  # noqa: PLR2004 - IPv4
    places = _number(f"/proc/sys/net/ipv{version}/neigh/default/gc_thresh3", 0, 10)
    taken = _number(f"/proc/net/stat/{name}_cache", 1, 16)
    return pace_for(places or USUAL_NEIGHBOURS, taken or 0)


def _number(file: str, line: int, base: int) -> int | None:
    """Return the first number in a line of *file*, None where the file says no such thing."""
    try:
        return int(Path(file).read_text(encoding="ascii").splitlines()[line].split()[0], base)
    except (OSError, ValueError, IndexError):
        return None


class _Run:
    """One scan at work."""

    def __init__(self, feed: Feed, flight: Flight, timeout: float, tell: Tell) -> None:
        self.interrupted = False
        self._feed, self._flight, self._timeout, self._tell = feed, flight, timeout, tell
        self._family = socket.AF_INET if feed.sweep.version == 4 else socket.AF_INET6  # noqa: PLR2004 - IPv4
        self._started = time.monotonic()
        self._told = 0.0
        self._held: tuple[int, int] | None = None
        self._found: dict[int, list[int]] = {}
        self._failed: Counter[int] = Counter()

    def work(self, stop: threading.Event) -> None:
        """Try everything, or end early once *stop* is set."""
        self._say()
        while self._feed.begun < self._feed.total or self._held or len(self._flight):
            if stop.is_set():
                self.interrupted = True
                return
            self._launch()
            self._hear()
            if time.monotonic() - self._told >= _TELL_EVERY_S:
                self._say()

    def result(self) -> Scan:
        """Return what was found so far, and say so."""
        self._say()
        return Scan(
            found={
                self._feed.sweep.text(number): tuple(sorted(ports))
                for number, ports in sorted(self._found.items())
            },
            tried=self._done,
            total=self._feed.total,
            seconds=time.monotonic() - self._started,
            failed=dict(self._failed),
            interrupted=self.interrupted,
        )

    @property
    def _done(self) -> int:
        return self._feed.begun - len(self._flight) - (self._held is not None)

    def _say(self) -> None:
        self._told = time.monotonic()
        feed = self._feed
        whole = estimate(
            feed.sweep, feed.pace, self._flight.at_once, self._timeout, len(feed.ports)
        )
        left = whole - (self._told - self._started) if self._done < feed.total else 0.0
        self._tell(Progress(self._done, feed.total, len(self._found), max(0.0, left)))

    def _launch(self) -> None:
        """Begin a batch, or as much of it as pace and descriptors allow."""
        elapsed = time.monotonic() - self._started
        for _ in range(min(_BATCH, self._flight.at_once - len(self._flight))):
            pair = self._held or self._feed.take(elapsed)
            self._held = None
            if pair is None or not self._begin(*pair):
                return

    def _begin(self, number: int, port: int) -> bool:
        """Begin one connect; return whether there was room for it."""
        try:
            one = socket.socket(self._family, socket.SOCK_STREAM)
        except OSError as error:
            if error.errno in _NO_ROOM and len(self._flight):
                self._held, self._flight.at_once = (number, port), len(self._flight)
                return False
            # Nothing will come back that makes room, or this kind of address is not to be had.
            self._failed[error.errno or errno.EIO] += 1
            return True
        one.settimeout(0.0)
        why = one.connect_ex((self._feed.sweep.text(number), port))
        if why == errno.EINPROGRESS:
            self._flight.add(Try(number, port, one, time.monotonic() + self._timeout))
        else:
            self._note(number, port, why)
            one.close()
        return True

    def _hear(self) -> None:
        """Take what has been decided; give up on what was late before we looked."""
        now = time.monotonic()
        for one in self._flight.answered(self._patience(now)):
            why = one.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            self._note(one.number, one.port, why)
            self._flight.drop(one)
        for one in self._flight.expired(now):
            self._failed[errno.ETIMEDOUT] += 1
            self._flight.drop(one)

    def _patience(self, now: float) -> float:
        """Return how long to wait for an answer: not at all while there is more to begin."""
        room = len(self._flight) < self._flight.at_once
        if room and (self._held or self._feed.can_give(now - self._started)):
            return 0.0
        until = self._flight.first_deadline if len(self._flight) else now + _LOOK_EVERY_S
        return min(until - now, _LOOK_EVERY_S)

    def _note(self, number: int, port: int, why: int) -> None:
        self._feed.heard(number)
        if why:
            self._failed[why] += 1
        else:
            self._found.setdefault(number, []).append(port)
