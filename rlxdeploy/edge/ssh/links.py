"""One link a host for the whole run, one a bastion, whoever asks first opens it.

A server takes few connections that have yet to log in (sshd's MaxStartups drops the tenth or so at
random): so only a few are begun at once at one place, and one that is hung up on before its banner
is tried again, after a wait that differs from link to link.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, Self, TypeVar

from rlxdeploy.edge.session import Session
from rlxdeploy.edge.ssh.dial import Line
from rlxdeploy.edge.ssh.failure import Broken, ConnectFailure, LostBeforeBanner
from rlxdeploy.edge.ssh.route import Hop, Route
from rlxdeploy.facts.ssh_config import expand
from rlxdeploy.model.host import Host

# sshd begins to drop at MaxStartups 10; leave room for people.
_BEGUN_AT_ONCE = 8
_TRIES = 6
_FIRST_WAIT_S = 0.25


class Link(Protocol):
    """An open connection to *hop*."""

    @property
    def hop(self) -> Hop:
        """The machine at its end."""

    @property
    def is_alive(self) -> bool:
        """Whether it can still carry a session."""

    def session(self, host: Host, command: str, deadline: float) -> Session:
        """Start *command*; raise ConnectFailure if the host will not."""

    def line_to(self, hop: Hop, deadline: float) -> Line:
        """Return a line to the SSH port of *hop*; raise ConnectFailure or OSError."""

    def close(self) -> None:
        """Hang up."""


L = TypeVar("L", bound=Link)
T = TypeVar("T")


class Client(Protocol[L]):
    """What opens links of one kind."""

    def connect(self, hop: Hop, before: L | None, deadline: float) -> L:
        """Return a link to *hop* through *before*; raise ConnectFailure or OSError."""


class Stopped(Exception):
    """The way ended at *hop* because of *reason*."""

    def __init__(self, hop: Hop, reason: ConnectFailure | OSError) -> None:
        super().__init__(str(reason))
        self.hop, self.reason = hop, reason


@dataclass(slots=True)
class _Place(Generic[L]):
    """One end of a route prefix: its link, or why there is none and since when."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    link: L | None = None
    failure: Stopped | None = None
    failed_at: float = 0.0


class Links(Generic[L]):
    """All links of one client; safe to use from many threads."""

    def __init__(self, client: Client[L]) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._places: dict[tuple[object, ...], _Place[L]] = {}
        self._begun: dict[object, threading.Semaphore] = {}
        self._order: list[L] = []
        self._closed = False

    def to(self, route: Route, deadline: float) -> L:
        """Return the link to the end of *route*, opening what is missing on the way.

        Raises Stopped.  Whoever waited while an attempt failed shares its failure.
        """
        asked_at = time.monotonic()
        before = self.to(route[:-1], deadline) if route[1:] else None
        place = self._place(route)
        if not place.lock.acquire(timeout=max(deadline - time.monotonic(), 0)):
            raise Stopped(route[-1], TimeoutError("another thread is still connecting to it"))
        try:
            if place.link is not None and place.link.is_alive:
                return place.link
            if place.failure is not None and place.failed_at >= asked_at:
                raise Stopped(place.failure.hop, place.failure.reason)
            return self._open(place, route, before, deadline)
        finally:
            place.lock.release()

    def tried(self, route: Route, deadline: float, attempt: Callable[[], T]) -> T:
        """Return what *attempt* at the end of *route* gives, begun when its turn comes.

        It is made again while the server hangs up before its banner and there is time.  Raises
        what it raises, and TimeoutError if no turn comes up.
        """
        for waited in range(_TRIES):
            try:
                with self._turn(route, deadline):
                    return attempt()
            except LostBeforeBanner:
                pause = _FIRST_WAIT_S * 2**waited * random.uniform(0.5, 1.5)  # noqa: S311  # no secret
                if waited + 1 == _TRIES or time.monotonic() + pause > deadline:
                    raise
                time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """Close every link, the last first: hops go after what runs through them."""
        with self._lock:
            self._closed = True
            links, self._order = self._order, []
        for link in reversed(links):
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _place(self, route: Route) -> _Place[L]:
        with self._lock:
            return self._places.setdefault(tuple(map(_identity, route)), _Place())

    def _open(self, place: _Place[L], route: Route, before: L | None, deadline: float) -> L:
        try:
            attempt = partial(self._client.connect, route[-1], before, deadline)
            link = self.tried(route, deadline, attempt)
        except (ConnectFailure, OSError) as error:
            place.failure, place.failed_at = Stopped(route[-1], error), time.monotonic()
            raise Stopped(route[-1], error) from error
        with self._lock:
            closed = self._closed
            self._order.append(link)
        if closed:
            link.close()
            raise Stopped(route[-1], Broken("connect", "interrupted"))
        place.link = link
        return link

    @contextmanager
    def _turn(self, route: Route, deadline: float) -> Iterator[None]:
        """Be one of the few that begin at the same place."""
        with self._lock:
            begun = threading.Semaphore(_BEGUN_AT_ONCE)
            turns = self._begun.setdefault(_doorstep(route), begun)
        if not turns.acquire(timeout=max(deadline - time.monotonic(), 0)):
            raise TimeoutError("no turn to connect came up")
        try:
            yield
        finally:
            turns.release()


def _identity(hop: Hop) -> tuple[object, ...]:
    """Return what two hops have in common if one link serves both: server, login and keys."""
    resolved = hop.resolved
    return (
        resolved.hostname,
        resolved.port,
        resolved.user,
        resolved.host_key_alias,
        # As it will run: `%n` takes two aliases of one name to two servers.
        expand(resolved.proxy_command, hop.tokens),
        resolved.known_hosts_files,
        resolved.certificate_files,
        resolved.identity_files,
        resolved.one("identitiesonly"),
        resolved.one("identityagent", "SSH_AUTH_SOCK"),
    )


def _doorstep(route: Route) -> object:
    """Name the server that sees a connection begin; a ProxyCommand's first server is its own."""
    last = route[-1].resolved
    way = tuple(map(_identity, route[:-1]))
    return last.proxy_command or (way, last.hostname, last.port)
