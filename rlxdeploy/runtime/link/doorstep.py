"""The listening socket while a group forms: who is let in from its queue, and when it rests."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any, Callable, Iterator, Optional, Tuple

from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.sockets import tune

# Something is lacking on this side, so that whoever knocks stays in the queue.
_LACKING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Doorstep:
    """Where ranks and strangers knock; *say* is told, once, why nobody can be let in.

    Somebody who cannot be let in keeps the socket readable, and poll would return at once for as
    long as that lasts: so the socket then rests.
    """

    def __init__(
        self,
        listener: socket.socket,
        limits: Limits,
        peer_timeout: float,
        say: Callable[[str], None],
    ) -> None:
        self.listener = listener
        self._limits, self._peer_timeout, self._say = limits, peer_timeout, say
        self._rests_until, self._told = 0.0, False

    def fileno(self) -> int:
        """Return the descriptor, for poll."""
        return self.listener.fileno()

    def rest(self, now: float) -> Optional[float]:
        """Return until when the socket is not to be looked at; None where it is."""
        return self._rests_until if self._rests_until > now else None

    def accept(self, now: float) -> Iterator[Tuple[socket.socket, Tuple[Any, ...]]]:
        """Yield the connections that wait, each tuned, and where they come from."""
        while True:
            try:
                sock, where = self.listener.accept()
            except OSError as error:
                # Nobody more, or the connection died in the queue: the next poll tells.
                if error.errno in _LACKING:
                    self._lacks(error.errno or 0, now)
                return
            tune(sock, self._peer_timeout, self._limits)
            yield sock, where

    def _lacks(self, number: int, now: float) -> None:
        self._rests_until = now + self._limits.accept_rest_s
        if not self._told:
            self._told = True
            self._say(f"nobody who dials in can be let in for now: {os.strerror(number)}")
