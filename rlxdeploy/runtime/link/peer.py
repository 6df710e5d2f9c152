"""One connection to one rank: frames in, frames out, never waiting.

A message that is asked for is received straight into the asker's memory; others wait in the
inbox, a queue for each tag.  What the kernel does not take at once waits in the outbox.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import Deque, Dict, List, NamedTuple, Optional

from rlxdeploy.runtime.errors import LengthMismatch, WireError
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.sockets import why
from rlxdeploy.runtime.wire.decoder import FrameDecoder, new_buffer
from rlxdeploy.runtime.wire.frame import Frame, Header, Kind, encode_header

# Below this a copy is cheaper than a second buffer in the system call.
_SMALL = 1024


class Wanted(NamedTuple):
    """The next message with *tag*: into this memory, or of any length into the inbox."""

    tag: int
    into: Optional[memoryview]


class Peer:
    """The link to *rank*; *lost* says why it ended, and *casualties* then holds it."""

    def __init__(
        self,
        rank: int,
        address: str,
        sock: socket.socket,
        limits: Limits,
        casualties: List[Peer],
    ) -> None:
        self.rank, self.address, self.sock = rank, address, sock
        self.lost: Optional[str] = None
        self.outbox: Deque[memoryview] = deque()
        self._casualties, self._limits = casualties, limits
        self._decoder = FrameDecoder(rank, limits.max_payload, self._place)
        self._inbox: Dict[int, Deque[memoryview]] = {}
        self._unread = 0
        self._wanted: Optional[Wanted] = None
        self._placed = False

    def ask(self, wanted: Wanted, op: str) -> bool:
        """Ask for the next message; return whether it is there already."""
        self._wanted, self._placed = wanted, False
        return self.answered(op)

    def answered(self, op: str) -> bool:
        """Whether what was asked for is there; LengthMismatch where it has another length."""
        if self._wanted is None:
            return True
        waiting = self._inbox.get(self._wanted.tag)
        if not waiting:
            return False
        if self._wanted.into is not None:
            message = self.pop(self._wanted.tag)
            if len(message) != len(self._wanted.into):
                raise LengthMismatch(op, self.rank, len(self._wanted.into), len(message))
            self._wanted.into[:] = message
        self._wanted = None
        return True

    def forget(self) -> None:
        """Take back what was asked for; a message under way goes to the inbox."""
        if self._wanted is not None and self._wanted.into is not None and self._placed:
            self._decoder.detach()
            self._unread += len(self._wanted.into)
        self._wanted = None

    def pop(self, tag: int) -> memoryview:
        """Take the oldest message with *tag* out of the inbox."""
        waiting = self._inbox[tag]
        message = waiting.popleft()
        if not waiting:
            del self._inbox[tag]
        self._unread -= len(message)
        return message

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

    def send(self, tag: int, source: int, data: memoryview) -> None:
        """Send a message as far as the kernel takes it; the rest goes to the outbox."""
        header = encode_header(Kind.SEND, source, tag, len(data))
        if len(data) <= _SMALL:
            self.outbox.append(memoryview(header + data))
        else:
            self.outbox.extend((memoryview(header), data))
        if len(self.outbox) <= 2:  # noqa: PLR2004 - nothing else was waiting
            self.push()

    def push(self) -> bool:
        """Send from the outbox what the kernel takes; return whether anything went or came."""
        outbox, moved = self.outbox, False
        while outbox and self.lost is None:
            try:
                left = self.sock.sendmsg(
                    (outbox[0], outbox[1]) if len(outbox) > 1 else (outbox[0],)
                )
            except BlockingIOError:
                break
            except OSError as error:
                self._send_failed(error)
                return True
            moved = True
            while outbox and left >= len(outbox[0]):
                left -= len(outbox.popleft())
            if left:
                outbox[0] = outbox[0][left:]
        return moved

    def lose(self, reason: str) -> None:
        """Note that the link has ended; the first reason stands."""
        if self.lost is None:
            self.lost = reason
            self._casualties.append(self)

    def _send_failed(self, error: OSError) -> None:
        """Take in what the peer said before it closed, then count it as lost."""
        while self.receive():
            pass
        self.lose(why(error))

    def _place(self, header: Header) -> memoryview:
        if header.kind is Kind.HELLO and not header.length:
            return new_buffer(header)
        if header.kind is not Kind.SEND:
            raise WireError(f"it sent {header.kind.name}; the one-sided heap is not supported yet")
        wanted = self._wanted
        if (
            wanted is not None
            and wanted.into is not None
            and not self._placed
            and header.b == wanted.tag
            and header.length == len(wanted.into)
        ):
            self._placed = True
            return wanted.into
        if self._unread + header.length > self._limits.max_unread:
            raise WireError(f"over {self._limits.max_unread} bytes wait that nobody asked for")
        self._unread += header.length
        return new_buffer(header)

    def _deliver(self, frame: Frame) -> None:
        """Give a message to who asked for it; a HELLO after the first says nothing new."""
        if frame.kind is not Kind.SEND:
            return
        if self._placed and self._wanted is not None and frame.payload is self._wanted.into:
            self._wanted = None
            return
        self._inbox.setdefault(frame.b, deque()).append(memoryview(frame.payload))
