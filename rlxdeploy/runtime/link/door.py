"""Who knocks at the listener: ranks that say HELLO in time, and strangers, who are shown out."""

from __future__ import annotations

import socket
from typing import Callable, Dict, Iterator, NamedTuple, Optional

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.errors import WireError
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.doorstep import Doorstep
from rlxdeploy.runtime.link.sockets import why
from rlxdeploy.runtime.link.strangers import Strangers
from rlxdeploy.runtime.wire.frame import HEADER_BYTES, parse_hello


class Guest:
    """A connection whose HELLO is not complete yet."""

    def __init__(self, sock: socket.socket, address: Address, leave_at: float) -> None:
        self.sock, self.address, self.leave_at = sock, address, leave_at
        self.said = b""


class Arrival(NamedTuple):
    """A connection that has said HELLO as *rank*."""

    rank: int
    sock: socket.socket
    address: Address


class Door:
    """The listening socket of a rank during the join; *strangers* counts whom it dropped.

    *say* is told of them.
    """

    def __init__(
        self,
        listener: socket.socket,
        limits: Limits,
        peer_timeout: float,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.listener, self.strangers = listener, Strangers(say, limits.max_reasons)
        self._doorstep = Doorstep(listener, limits, peer_timeout, say)
        self._limits = limits
        self._guests: Dict[int, Guest] = {}

    def waiting(self) -> Iterator[int]:
        """Yield the descriptors of the guests."""
        return iter(self._guests)

    def watched(self, now: float) -> Iterator[int]:
        """Yield the descriptors on which something may come."""
        if self._doorstep.rest(now) is None:
            yield self.listener.fileno()
        yield from self.waiting()

    def wake_at(self, now: float) -> Optional[float]:
        """Return when the first guest is dropped for saying nothing, or the listener has rested."""
        leaves = [guest.leave_at for guest in self._guests.values()]
        rest = self._doorstep.rest(now)
        return min(leaves if rest is None else [*leaves, rest], default=None)

    def admit(self, now: float) -> None:
        """Accept who stands before the door; the oldest guest makes room where it is full."""
        for sock, where in self._doorstep.accept(now):
            address = Address(str(where[0]), int(where[1]))
            self._guests[sock.fileno()] = Guest(sock, address, now + self._limits.hello_s)
            if len(self._guests) > self._limits.max_guests:
                self._drop(next(iter(self._guests)), "too many knocked")

    def listen_to(self, fd: int) -> Optional[Arrival]:
        """Read from a guest; return it once it is known to be a rank."""
        guest = self._guests.get(fd)
        if guest is None:
            return None
        try:
            heard = guest.sock.recv(HEADER_BYTES - len(guest.said))
            guest.said += heard
            if heard and len(guest.said) < HEADER_BYTES:
                return None
            rank = parse_hello(guest.said)
        except BlockingIOError:
            return None
        except (OSError, WireError) as error:
            self._drop(fd, why(error) if isinstance(error, OSError) else str(error))
            return None
        del self._guests[fd]
        return Arrival(rank, guest.sock, guest.address)

    def expire(self, now: float) -> None:
        """Drop the guests that have said nothing for too long."""
        for fd, guest in tuple(self._guests.items()):
            if guest.leave_at <= now:
                self._drop(fd, f"it did not say HELLO within {self._limits.hello_s:g} s")

    def close(self) -> None:
        """Drop everybody and stop listening."""
        for guest in self._guests.values():
            guest.sock.close()
        self._guests = {}
        self.listener.close()

    def _drop(self, fd: int, reason: str) -> None:
        guest = self._guests.pop(fd)
        guest.sock.close()
        self.strangers.turned_away(guest.address, reason)
