"""One link a host for the whole run, one a bastion, whoever asks first opens it."""

import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, Self, TypeVar

from rlxdeploy.edge.session import Session
from rlxdeploy.edge.ssh.dial import Line
from rlxdeploy.edge.ssh.failure import Broken, ConnectFailure
from rlxdeploy.edge.ssh.route import Hop, Route, identity
from rlxdeploy.edge.ssh.turns import Turns
from rlxdeploy.model.host import Host


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
    """All links of one client, begun by *turns*; safe to use from many threads."""

    def __init__(self, client: Client[L], turns: Turns) -> None:
        self._client = client
        self._turns = turns
        self._lock = threading.Lock()
        self._places: dict[tuple[object, ...], _Place[L]] = {}
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
            return self._places.setdefault(identity(route), _Place())

    def _open(self, place: _Place[L], route: Route, before: L | None, deadline: float) -> L:
        try:
            attempt = partial(self._client.connect, route[-1], before, deadline)
            link = self._turns.tried(route, deadline, attempt)
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
