"""What the ways of finding ranks share: a deadline, this host's address, a socket, a thread."""

from __future__ import annotations

import errno
import socket
import threading
import time
from typing import Callable, Mapping

from rlxdeploy.runtime.errors import JoinTimeout, PortInUse, RefusedError
from rlxdeploy.runtime.link.listener import holder
from rlxdeploy.runtime.link.sockets import why

# Room for what a flood brings while another thread has the interpreter.
_RECEIVE_BYTES = 4 << 20
_FAR_AWAY = ("8.8.8.8", 80)
_WILDCARD = "0.0.0.0"  # noqa: S104 - a broadcast comes to no address of one's own


class Until:
    """When a search must be over: *seconds*, as errors call it, before *deadline*."""

    def __init__(self, deadline: float, seconds: float) -> None:
        self.deadline, self._seconds = deadline, seconds

    @property
    def left(self) -> float:
        """How many seconds are left, 0 at the end."""
        return max(0.0, self.deadline - time.monotonic())

    def missed(self, reasons: Mapping[int, str]) -> JoinTimeout:
        """Return the error that says what was tried for each rank."""
        return JoinTimeout(self._seconds, reasons)


class Background(threading.Thread):
    """Takes *step* after *step*, each given how to wait for its seconds, until it is stopped."""

    def __init__(self, name: str, step: Callable[[Callable[[float], object]], None]) -> None:
        super().__init__(name=name, daemon=True)
        self._step, self._stopped = step, threading.Event()

    def run(self) -> None:
        """Take steps."""
        while not self._stopped.is_set():
            self._step(self._stopped.wait)

    def stop(self) -> None:
        """Let the step under way be the last, and wait for its end."""
        self._stopped.set()
        self.join()


def own_host() -> str:
    """Return the address from which this host reaches others; without a route its loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a UDP socket only looks up the route.
            probe.connect(_FAR_AWAY)
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def bind_udp(port: int, *, shared: bool) -> socket.socket:
    """Return a UDP socket at every address of this host; *shared* with other ranks on it.

    Raises PortInUse with the holder where /proc tells.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(0)
    try:
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        sock.bind((_WILDCARD, port))
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(_WILDCARD, port, holder(_WILDCARD, port, udp=True)) from error
        raise RefusedError(f"cannot listen at UDP port {port}: {why(error)}") from error
    return sock
