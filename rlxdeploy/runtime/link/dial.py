"""Dialling one rank, again and again until it is there."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
from typing import Any, Callable, List, Optional, Tuple, Union

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.sockets import tune, why
from rlxdeploy.runtime.wire.frame import hello

_Found = Tuple[socket.AddressFamily, Tuple[Any, ...]]


class Dial:
    """One address that is dialled; at most one attempt is under way, in *sock*."""

    def __init__(
        self, own_rank: int, address: Address, limits: Limits, peer_timeout: float
    ) -> None:
        self.address = address
        self.sock: Optional[socket.socket] = None
        self._hello, self._limits, self._peer_timeout = hello(own_rank), limits, peer_timeout
        self._delay = limits.redial_min_s
        # Is shown the socket and where it will go, before it goes there.
        self.prepare: Callable[[socket.socket, Tuple[Any, ...]], None] = lambda _sock, _where: None
        self.wake_at = 0.0

    def start(self, now: float) -> Optional[str]:
        """Begin an attempt; return why it failed at once, if it did."""
        self.wake_at = now + self._limits.dial_s
        try:
            family, where = resolve(self.address, self._limits.dial_s)
            self.sock = socket.socket(family, socket.SOCK_STREAM)
            tune(self.sock, self._peer_timeout, self._limits)
            self.prepare(self.sock, where)
            begun = self.sock.connect_ex(where)
        except OSError as error:
            return self.fail(now, error.strerror or str(error))
        if begun not in {0, errno.EINPROGRESS}:
            return self.fail(now, why(OSError(begun, os.strerror(begun))))
        return None

    def finish(self, now: float) -> Union[socket.socket, str]:
        """Say HELLO on the connection that is open now; return it, or why there is none."""
        sock, self.sock = self.sock, None
        if sock is None:
            return "nothing was dialled"
        failed = self._greet(sock)
        if failed is None:
            return sock
        sock.close()
        return self.fail(now, failed)

    def _greet(self, sock: socket.socket) -> Optional[str]:
        failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            return why(OSError(failed, os.strerror(failed)))
        try:
            # Dialling a free local port may meet itself: the kernel chose that port to dial from.
            if sock.getsockname() == sock.getpeername():
                return "nobody listens"
            sock.send(self._hello)
        except OSError as error:
            return why(error)
        return None

    def fail(self, now: float, reason: str) -> str:
        """End the attempt and choose when to try again; return *reason*."""
        self.give_up()
        self.wake_at = now + self._delay
        self._delay = min(self._delay * 2, self._limits.redial_max_s)
        return reason

    def give_up(self) -> None:
        """Close the attempt under way, if any."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None


def resolve(address: Address, seconds: float) -> _Found:
    """Return the first address of a name; a resolver that hangs is left behind."""
    with contextlib.suppress(socket.gaierror):
        return _lookup(address, socket.AI_NUMERICHOST)
    found: List[_Found] = []
    failed: List[OSError] = []

    def ask() -> None:
        try:
            found.append(_lookup(address, 0))
        except OSError as error:
            failed.append(error)

    resolver = threading.Thread(target=ask, name=f"resolve {address.host}", daemon=True)
    resolver.start()
    resolver.join(seconds)
    if found:
        return found[0]
    raise failed[0] if failed else TimeoutError(0, f"the name {address.host} was not resolved")


def _lookup(address: Address, flags: int) -> _Found:
    family, _, _, _, where = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=flags
    )[0]
    return family, where
