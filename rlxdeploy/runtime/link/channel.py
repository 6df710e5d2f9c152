"""One connection of the native wire: bytes in, bytes out, never waiting.

What the kernel does not take at once waits in the queue.  Once the other end has closed, what it
had sent before can be taken out of the kernel and walked, to find the goodbye or the cause at its
end; it is then read from here as if it still came from the socket.
"""

from __future__ import annotations

import contextlib
import socket
from collections import deque
from typing import TYPE_CHECKING, Deque, Dict, Optional, Tuple

import numpy as np

from rlxdeploy.runtime.errors import WireError
from rlxdeploy.runtime.link.sockets import why
from rlxdeploy.runtime.vocabulary import Op
from rlxdeploy.runtime.wire.control import MAX_CAUSE
from rlxdeploy.runtime.wire.header import HEADER_BYTES, Header, decode

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Up to here header and payload are one piece for one system call; a copy costs less than a second.
SMALL = 16 << 10
_DONTWAIT = socket.MSG_DONTWAIT
_NOTHING = memoryview(b"")
_TAKE = 256 << 10


class Channel:
    """The link to *rank*; *lost* says why it ended, *finished* that it said goodbye before."""

    __slots__ = (
        "address",
        "begun",
        "finished",
        "head",
        "inbox",
        "lost",
        "payload",
        "queue",
        "rank",
        "recv_into",
        "send_bytes",
        "small",
        "sock",
        "stash",
        "unread",
        "want",
        "whole",
    )

    def __init__(self, rank: int, address: str, sock: socket.socket) -> None:
        # Blocking for Python, so that it never polls; every call says MSG_DONTWAIT.
        sock.settimeout(None)
        self.rank, self.address, self.sock = rank, address, sock
        self.recv_into, self.send_bytes = sock.recv_into, sock.send
        # Pieces to send, each with whether it ends a message.
        self.queue: Deque[Tuple[memoryview, bool]] = deque()
        self.stash = _NOTHING
        # A whole small message, and its parts: as it is, header, payload.
        self.whole = bytearray(HEADER_BYTES + SMALL)
        self.small = memoryview(self.whole)
        self.head = self.small[:HEADER_BYTES]
        self.payload: NDArray[np.uint8] = np.frombuffer(self.whole, np.uint8)[HEADER_BYTES:]
        self.inbox: Dict[int, Deque[memoryview]] = {}
        self.unread = 0
        # The message being read while this rank sleeps: what is there of a header that is not
        # whole, or how many bytes are still to come.
        self.begun = b""
        self.want = 0
        self.lost: Optional[str] = None
        self.finished = False

    def send(self, head: bytes, data: memoryview) -> bool:
        """Send a message as far as the kernel takes it; return whether some had to be queued."""
        sent = 0
        if not self.queue and self.lost is None:
            try:
                if len(data) <= SMALL:
                    sent = self.send_bytes(b"".join((head, data)), _DONTWAIT)
                else:
                    sent = self.sock.sendmsg((head, data), (), _DONTWAIT)
            except BlockingIOError:
                pass
            except OSError as error:
                self.lost = why(error)
        if sent == HEADER_BYTES + len(data):
            return False
        self.resume(memoryview(head), data, sent)
        return True

    def resume(self, head: memoryview, data: memoryview, sent: int) -> None:
        """Queue what is left of a message of which the kernel took *sent* bytes."""
        if sent < len(head):
            self.queue.append((head[sent:], not data))
        if data:
            self.queue.append((data[max(0, sent - len(head)) :], True))

    def push(self) -> bool:
        """Send from the queue what the kernel takes; return whether it took anything."""
        queue, moved = self.queue, False
        while queue and self.lost is None:
            piece, last = queue[0]
            try:
                sent = self.sock.send(piece, _DONTWAIT)
            except BlockingIOError:
                break
            except OSError as error:
                self.lost = why(error)
                break
            moved = True
            if sent < len(piece):
                queue[0] = (piece[sent:], last)
            else:
                queue.popleft()
        return moved

    def leave(self, words: bytes) -> None:
        """Queue the last message: it takes the place of all but what is already begun.

        A peer that has said its own last words may still hear ours.
        """
        if self.lost is not None:
            with contextlib.suppress(OSError):
                self.sock.send(words, _DONTWAIT)
            return
        begun = []
        for piece, last in self.queue:
            begun.append((piece, last))
            if last:
                break
        self.queue.clear()
        self.queue.extend(begun)
        self.queue.append((memoryview(words), True))

    def shut(self) -> None:
        """Tell the other end that no more comes; what it sends is still taken."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def unstash(self, view: memoryview) -> int:
        """Fill *view* from what was taken out of the kernel before; return how far."""
        count = min(len(view), len(self.stash))
        view[:count] = self.stash[:count]
        self.stash = self.stash[count:]
        return count

    def pop(self, tag: int) -> memoryview:
        """Take the oldest message with *tag* out of the inbox."""
        waiting = self.inbox[tag]
        message = waiting.popleft()
        if not waiting:
            del self.inbox[tag]
        self.unread -= len(message)
        return message

    def unread_first(self, data: memoryview) -> None:
        """Put back what was read too far."""
        self.stash = memoryview(bytes(data) + bytes(self.stash))

    def glance(self) -> Optional[Header]:
        """Return the header of the next message without taking it, where it is there whole."""
        if self.stash:
            return decode(self.stash) if len(self.stash) >= HEADER_BYTES else None
        try:
            seen = self.sock.recv(HEADER_BYTES, socket.MSG_PEEK | _DONTWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            self.lost = why(error)
            return None
        if not seen:
            self.lost = "it closed the connection"
        return decode(seen) if len(seen) == HEADER_BYTES else None

    def drain(self) -> Optional[Header]:
        """Take out of the kernel all that is there; return the peer's last words, if among it.

        The header returned is an ABORT or a GOODBYE, and the stash then ends with that message.
        """
        taken = [bytes(self.stash)]
        try:
            while taken[-1] or len(taken) == 1:
                taken.append(self.sock.recv(_TAKE, _DONTWAIT))
            self.lost = self.lost or "it closed the connection"
        except BlockingIOError:
            pass
        except OSError as error:
            self.lost = self.lost or why(error)
        self.stash = memoryview(b"".join(taken))
        return _last_words(memoryview(self.begun + bytes(self.stash[self.want :])))

    def last_cause(self, last: Header) -> bytes:
        """Return the payload of the abort that `drain` has found."""
        return bytes(self.stash[len(self.stash) - last.length :])


def _last_words(stream: memoryview) -> Optional[Header]:
    """Walk whole messages to the last one."""
    while len(stream) >= HEADER_BYTES:
        try:
            header = decode(stream)
        except WireError:
            return None
        rest = stream[HEADER_BYTES:]
        if header.op in {Op.ABORT, Op.GOODBYE}:
            return header if header.length == len(rest) <= MAX_CAUSE else None
        stream = rest[header.length :] if header.op != Op.GET else rest
    return None
