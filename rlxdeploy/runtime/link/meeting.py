"""One connection while its two ends shake hands, without waiting."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
from enum import Enum
from typing import NamedTuple, Optional, Union

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.errors import WireError
from rlxdeploy.runtime.link.sockets import why
from rlxdeploy.runtime.wire.handshake import NONCE_BYTES, Handshake
from rlxdeploy.runtime.wire.identity import HandshakeRefused, Identity


class Secrets(NamedTuple):
    """Who this rank is, and the key it proves that with."""

    own: Identity
    key: bytes


class Met(Enum):
    """How far a meeting is, where it has not failed."""

    TALKING = "talking"
    # The other end has proven itself and awaits a verdict.
    PROVEN = "proven"
    DONE = "done"


class Meeting:
    """A connection in the middle of its handshake; *dialled* is the rank it was dialled to reach.

    It must be over at *until*.
    """

    def __init__(
        self,
        sock: socket.socket,
        address: Address,
        secrets: Secrets,
        until: float,
        dialled: Optional[int] = None,
    ) -> None:
        self.sock, self.address, self.until, self.dialled = sock, address, until, dialled
        self.talk = Handshake(secrets.own, secrets.key, os.urandom(NONCE_BYTES), dialled=dialled)
        self._out = self.talk.opening
        self._connecting = dialled is not None

    @property
    def events(self) -> int:
        """What poll should look for."""
        waiting_to_send = self._connecting or self._out
        return select.POLLOUT if waiting_to_send else select.POLLIN

    @property
    def known(self) -> bool:
        """Whether the other end has said who it is."""
        return self.talk.peer is not None

    @property
    def peer(self) -> Identity:
        """Who the other end says it is; only once it is `known`."""
        assert self.talk.peer is not None, "whoever has met is known"  # noqa: S101 - cannot happen
        return self.talk.peer

    def proceed(self) -> Union[Met, HandshakeRefused, str]:
        """Do what can be done at once; return how far it is, or why it failed."""
        try:
            if self._connecting:
                self._connected()
            return self._talk()
        except BlockingIOError:
            return Met.TALKING
        except HandshakeRefused as error:
            self._say(error.reply)
            return error
        except WireError as error:
            return str(error)
        except OSError as error:
            return why(error)

    def welcome(self) -> None:
        """Take the other end in."""
        self._say(self.talk.welcome())

    def refuse(self, reason: str) -> None:
        """Turn the other end away and hang up."""
        self._say(self.talk.refuse(reason))
        self.sock.close()

    def _connected(self) -> None:
        failed = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, os.strerror(failed))
        try:
            there = self.sock.getpeername()
        except OSError:
            # Neither failed nor open: nobody has answered so far.
            raise BlockingIOError from None
        # Dialling a free local port may meet itself: the kernel chose that port to dial from.
        if self.sock.getsockname() == there:
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        self._connecting = False

    def _talk(self) -> Met:
        while True:
            while self._out:
                self._out = self._out[self.sock.send(self._out) :]
            if self.talk.done:
                return Met.DONE
            if self.talk.proven:
                return Met.PROVEN
            heard = self.sock.recv(self.talk.wanted)
            if not heard:
                raise WireError("it closed the connection during the handshake")
            self._out = self.talk.receive(heard)

    def _say(self, last: bytes) -> None:
        """Send last words: they fit any socket buffer, and who does not hear them asks again."""
        with contextlib.suppress(OSError):
            self.sock.send(last)
