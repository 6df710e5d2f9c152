"""Whose turn it is to connect: few begin at once at one place, by whatever client.

A server takes few connections that have yet to log in (sshd's MaxStartups drops the tenth or so at
random), and one that is hung up on before its banner is tried again, after a wait that differs from
link to link.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rlxdeploy.edge.ssh.failure import LostBeforeBanner
from rlxdeploy.edge.ssh.route import Route, identity

# sshd begins to drop at MaxStartups 10; leave room for people.
_BEGUN_AT_ONCE = 8
_TRIES = 6
_FIRST_WAIT_S = 0.25

T = TypeVar("T")


class Turns:
    """The connections of one run that are being made; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: dict[object, threading.Semaphore] = {}

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


def _doorstep(route: Route) -> object:
    """Name the server that sees a connection begin; a ProxyCommand's first server is its own."""
    last = route[-1].resolved
    return last.proxy_command or (identity(route[:-1]), last.hostname, last.port)
