"""One connection to one rank: frames in, frames out, never waiting.

A message that is asked for is received straight into the asker's memory; others wait in the
inbox.  What the kernel does not take at once waits in the outbox.  Puts and gets of the peer are
served as they come.
"""

from __future__ import annotations

import socket
from typing import List, NamedTuple, Optional

from rlxdeploy.runtime.errors import LengthMismatch, WireError
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.heap import Heap
from rlxdeploy.runtime.link.inbox import Inbox
from rlxdeploy.runtime.link.outbox import Outbox
from rlxdeploy.runtime.link.sockets import why
from rlxdeploy.runtime.wire.decoder import FrameDecoder, new_buffer
from rlxdeploy.runtime.wire.frame import (
    Frame,
    Header,
    Kind,
    encode_header,
    get_request,
    parse_get_request,
)

# A GETREQ says 8 bytes and a HELLO none; more is passed over, but not without end.
_MAX_ASIDE = 4096
# Whoever asks this often without reading an answer would have us keep answers without end.
_MAX_ANSWERS = 1024
_NOTHING = memoryview(b"")


class Home(NamedTuple):
    """What all peers of one rank share; *casualties* are those whose link has ended."""

    rank: int
    heap: Heap
    limits: Limits
    casualties: List[Peer]


class Wanted(NamedTuple):
    """The next message with *tag*: into this memory, or of any length into the inbox."""

    tag: int
    into: Optional[memoryview]


class Fetched(NamedTuple):
    """Bytes of the peer's heap that were asked for, and where they go."""

    offset: int
    into: memoryview


class Peer:
    """The link to *rank*; *lost* says why it ended."""

    def __init__(self, rank: int, address: str, sock: socket.socket, home: Home) -> None:
        self.rank, self.address, self.sock = rank, address, sock
        self.lost: Optional[str] = None
        self.outbox, self.inbox = Outbox(), Inbox(home.limits.max_unread)
        self._home = home
        self._decoder = FrameDecoder(rank, home.limits.max_payload, self._place)
        self._wanted: Optional[Wanted] = None
        self._placed = False
        self._fetched: Optional[Fetched] = None
        self._mute = False

    def ask(self, wanted: Wanted, op: str) -> bool:
        """Ask for the next message; return whether it is there already."""
        self._wanted, self._placed = wanted, False
        return self.answered(op)

    def fetch(self, offset: int, into: memoryview) -> None:
        """Ask for bytes of the peer's heap."""
        self._fetched = Fetched(offset, into)
        self.send(get_request(self._home.rank, offset, len(into)), _NOTHING)

    def answered(self, op: str) -> bool:
        """Whether what was asked for is there; LengthMismatch where it has another length."""
        if self._fetched is not None:
            return False
        if self._wanted is None:
            return True
        if not self.inbox.has(self._wanted.tag):
            return False
        if self._wanted.into is not None:
            message = self.inbox.pop(self._wanted.tag)
            if len(message) != len(self._wanted.into):
                raise LengthMismatch(op, self.rank, len(self._wanted.into), len(message))
            self._wanted.into[:] = message
        self._wanted = None
        return True

    def forget(self) -> None:
        """Take back what was asked for; a message under way goes to the inbox."""
        if self._wanted is not None and self._wanted.into is not None and self._placed:
            self._decoder.detach()
            self.inbox.expect(len(self._wanted.into))
        self._wanted = None

    def receive(self) -> bool:
        """Take in what the kernel holds, up to one buffer; return whether anything came."""
        if self.lost is not None:
            return False
        try:
            count = self.sock.recv_into(self._decoder.buffer())
        except BlockingIOError:
            return False
        except OSError as error:
            self.lose(why(error))
            return False
        if not count:
            broken = " in the middle of a message" if self._decoder.inside_frame else ""
            self.lose(f"it closed the connection{broken}")
            return False
        try:
            for frame in self._decoder.advance(count):
                self._deliver(frame)
        except WireError as error:
            self.lose(str(error))
            raise WireError(f"rank {self.rank} ({self.address}): {error}") from None
        return True

    def send(self, header: bytes, data: memoryview, *, lent: bool = True) -> None:
        """Send as far as the kernel takes it; the rest goes to the outbox."""
        if self._mute:
            return
        busy = len(self.outbox)
        self.outbox.add(header, data, lent=lent)
        if not busy:
            self.push()

    def push(self) -> bool:
        """Send from the outbox what the kernel takes; return whether anything went or came."""
        if self.lost is not None:
            return False
        try:
            return self.outbox.send(self.sock)
        except OSError as error:
            self._send_failed(error)
            return True

    def lose(self, reason: str) -> None:
        """Note that the link has ended; the first reason stands."""
        if self.lost is None:
            self.lost = reason
            self._home.casualties.append(self)

    def _send_failed(self, error: OSError) -> None:
        """Take in what the peer said before it closed, then count it as lost."""
        self._mute = True
        self.outbox.clear()
        while self.receive():
            pass
        self.lose(why(error))

    def _place(self, header: Header) -> memoryview:
        if header.kind is Kind.SEND:
            return self._place_message(header)
        if header.kind is Kind.PUT:
            return self._home.heap.window(header.b, header.length) or new_buffer(header)
        if header.kind is Kind.GETRESP:
            return self._place_fetched(header)
        if header.length > _MAX_ASIDE:
            raise WireError(f"it sent {header.kind.name} of {header.length} bytes")
        return new_buffer(header)

    def _place_message(self, header: Header) -> memoryview:
        wanted = self._wanted
        if (
            wanted is not None
            and wanted.into is not None
            and not self._placed
            and header.b == wanted.tag
            and header.length == len(wanted.into)
            and not self.inbox.refuses(wanted.tag)
        ):
            self._placed = True
            return wanted.into
        self.inbox.expect(header.length)
        return new_buffer(header)

    def _place_fetched(self, header: Header) -> memoryview:
        fetched = self._fetched
        if fetched is None or header.b != fetched.offset:
            raise WireError("it answered a get that was not asked of it")
        if header.length == len(fetched.into):
            return fetched.into
        if header.length:
            raise WireError(
                f"it answered a get of {len(fetched.into)} bytes with {header.length} bytes"
            )
        raise WireError(
            f"its heap has no {len(fetched.into)} bytes at offset {fetched.offset}; "
            "every rank needs a heap of the same size"
        )

    def _deliver(self, frame: Frame) -> None:
        """Give a frame to whom it is for; a HELLO after the first says nothing new."""
        if frame.kind is Kind.SEND:
            self._deliver_message(frame)
        elif frame.kind is Kind.GETREQ:
            self._serve(frame)
        elif frame.kind is Kind.GETRESP:
            self._fetched = None

    def _deliver_message(self, frame: Frame) -> None:
        if self._placed and self._wanted is not None and frame.payload is self._wanted.into:
            self._wanted = None
            return
        self.inbox.put(frame.b, memoryview(frame.payload))

    def _serve(self, frame: Frame) -> None:
        """Answer a get: empty where the heap has not all that is asked for."""
        asked = parse_get_request(frame.payload)
        if asked is None:
            return
        if len(self.outbox) >= _MAX_ANSWERS:
            raise WireError(f"it does not read the answers to its gets; {_MAX_ANSWERS} wait")
        offset, length = asked
        found = self._home.heap.window(offset, length)
        data = _NOTHING if found is None else found
        header = encode_header(Kind.GETRESP, self._home.rank, offset, len(data))
        self.send(header, data, lent=False)
