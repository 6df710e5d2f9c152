"""Receiving: whole messages, one after the other, from whichever channel the schedule names.

A receive first tries, then spins for a while, as a message that is about to come costs less that
way, then sleeps in poll, where it sees every other link too.  Every receive also sends what waits
to be sent: progress never depends on the size of the kernel's buffers.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from time import monotonic
from typing import NamedTuple, NoReturn, Optional

from rlxdeploy.runtime.errors import CollectiveTimeout, LengthMismatch, WireError
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.base import Call
from rlxdeploy.runtime.link.channel import SMALL, Channel
from rlxdeploy.runtime.link.sockets import why
from rlxdeploy.runtime.link.vigil import Serve, Vigil
from rlxdeploy.runtime.vocabulary import Op
from rlxdeploy.runtime.wire.control import MAX_CAUSE
from rlxdeploy.runtime.wire.header import HEADER, HEADER_BYTES, VERSION, Header, decode

_DONTWAIT = socket.MSG_DONTWAIT
# What is about to come comes in the first tenth of the spinning.  For the rest every turn offers
# the core to others: on a busy machine the awaited rank itself may be the one that needs it.
_POLITE = 0.9


class Spin(NamedTuple):
    """Spin for *seconds*, giving the core away meanwhile where ranks share cores."""

    seconds: float
    crowded: bool


class Inlet:
    """The receiving side of one rank's channels.

    Every method raises PeerLost, CollectiveTimeout, CollectiveMismatch or WireError; the channels
    are then of no more use, except after a `take` that was late before its message began.
    """

    def __init__(self, vigil: Vigil, limits: Limits, spin: Spin) -> None:
        self._vigil, self._limits, self._sending = vigil, limits, vigil.sending
        self._spin_s, self._crowded = spin
        self._polite_s = spin.seconds * _POLITE
        self._gentle = False
        vigil.serve = self.serve
        # What is neither a message, an abort nor a goodbye; False where it belongs to a call.
        self.errand: Serve = lambda _channel, _header, _call: False

    def receive(self, channel: Channel, head: bytes, view: memoryview, call: Call) -> None:
        """Receive the message with header *head* into *view*."""
        size = len(view)
        if size > SMALL:
            self._head(channel, head, call)
            self._fill(channel, view, 0, size, call)
        else:
            self.small(channel, head, size, call)
            view[:] = channel.small[HEADER_BYTES : HEADER_BYTES + size]

    def small(self, channel: Channel, head: bytes, size: int, call: Call) -> None:
        """Receive a whole message into `channel.small`."""
        whole = HEADER_BYTES + size
        view = channel.small[:whole]
        while True:
            got = self._fill(channel, view, 0, HEADER_BYTES, call)
            if channel.whole.startswith(head):
                break
            self._divert(channel, view[:got], head, call)
        if got < whole:
            self._fill(channel, view, got, whole, call)

    def take(
        self, channel: Channel, tag: int, into: Optional[memoryview], call: Call
    ) -> Optional[memoryview]:
        """Receive the next message with *tag* into *into*, or return it.

        A CollectiveTimeout leaves the channels usable unless the message had begun to come.
        """
        waiting = channel.inbox.get(tag)
        if waiting:
            return _delivered(channel.pop(tag), into, channel.rank, call)
        awaited = Header(Op.SEND, root=tag, total=0 if into is None else len(into)).encode()
        while True:
            self._gentle = True
            try:
                self._fill(channel, channel.head, 0, HEADER_BYTES, call)
            finally:
                self._gentle = False
            header = Header(*HEADER.unpack_from(channel.whole))
            if header.op == Op.SEND and header.root == tag and header.version == VERSION:
                return self._accept(channel, header, into, call)
            self._divert(channel, channel.head, awaited, call)

    def _accept(
        self, channel: Channel, header: Header, into: Optional[memoryview], call: Call
    ) -> Optional[memoryview]:
        if header.length > self._limits.max_payload:
            channel.lost = f"it announced {header.length} bytes"
            self._vigil.miss(channel, call)
        place = into
        if place is None or len(place) != header.length:
            place = memoryview(bytearray(header.length))
        self._fill(channel, place, 0, header.length, call)
        return None if place is into else _delivered(place, into, channel.rank, call)

    def peek(self, channel: Channel, call: Call) -> Header:
        """Wait for the next message's header and leave it where it is."""
        self._fill(channel, channel.head, 0, HEADER_BYTES, call)
        header = self._decoded(channel, channel.head, call)
        channel.unread_first(channel.head)
        return header

    def payload(self, channel: Channel, header: Header, call: Call) -> memoryview:
        """Receive the message whose *header* is next, into memory of its own."""
        payload = memoryview(bytearray(header.length))
        self.payload_into(channel, payload, call)
        return payload

    def payload_into(self, channel: Channel, view: memoryview, call: Call) -> None:
        """Receive the message whose header is next into *view*, which has its size."""
        self._fill(channel, channel.head, 0, HEADER_BYTES, call)
        self._fill(channel, view, 0, len(view), call)

    def divert(self, channel: Channel, head: bytes, call: Call) -> None:
        """Deal with the next message, which is not the awaited one of header *head*."""
        self._fill(channel, channel.head, 0, HEADER_BYTES, call)
        self._divert(channel, channel.head, head, call)

    def serve(self, channel: Channel, header: Header, call: Call) -> bool:
        """Take in a message that belongs to no call, as its *header* says; False if it does."""
        if header.op == Op.ABORT and header.length <= MAX_CAUSE:
            self._vigil.told(channel, bytes(self.payload(channel, header, call)), call)
        if header.op == Op.GOODBYE:
            channel.finished = True
            return False
        if header.op != Op.SEND:
            return self.errand(channel, header, call)
        if channel.unread + header.length > self._limits.max_unread:
            return False
        message = self.payload(channel, header, call)
        channel.inbox.setdefault(header.root, deque()).append(message)
        channel.unread += len(message)
        return True

    def _head(self, channel: Channel, head: bytes, call: Call) -> None:
        while True:
            self._fill(channel, channel.head, 0, HEADER_BYTES, call)
            if channel.whole.startswith(head):
                return
            self._divert(channel, channel.head, head, call)

    def _fill(  # noqa: C901 - one piece: every call from in here shows in the latency
        self, channel: Channel, view: memoryview, got: int, least: int, call: Call
    ) -> int:
        """Receive into *view*, of which *got* bytes are there, until *least* are; return how many.

        A view on `channel.whole` that wants no more than a header is at a message's beginning.
        """
        if channel.stash:
            got += channel.unstash(view[got:])
        rest = view[got:]
        spin_until = 0.0
        recv_into = channel.recv_into
        while got < least:
            try:
                count = recv_into(rest, 0, _DONTWAIT)
            except BlockingIOError:
                if self._sending:
                    self._vigil.push(call)
                now = monotonic()
                if not spin_until:
                    spin_until = now + self._spin_s
                elif now > spin_until:
                    self._sleep(channel, view, got, least, call)
                elif self._crowded or now > spin_until - self._polite_s:
                    os.sched_yield()
                continue
            except OSError as error:
                channel.lost = why(error)
                count = 0
            if not count:
                self._lost(channel, call)
            got += count
            rest = rest[count:]
            if got < least:
                spin_until = monotonic() + self._spin_s
                if spin_until > call.deadline + self._spin_s:
                    self._sleep(channel, view, got, least, call)
                if self._sending:
                    self._vigil.push(call)
        return got

    def _sleep(self, channel: Channel, view: memoryview, got: int, least: int, call: Call) -> None:
        """Sleep until more comes from *channel*, whose message stands as `_fill` says."""
        in_head = least == HEADER_BYTES and view.obj is channel.whole
        if in_head and not got and self._gentle and monotonic() >= call.deadline:
            raise CollectiveTimeout(call.op, call.seconds, [channel.rank])
        channel.begun = bytes(view[:got]) if in_head else b""
        channel.want = 0 if in_head else len(view) - got
        self._vigil.busy(channel, reading=True)
        self._vigil.sleep(channel, call, [channel.rank])
        self._vigil.busy(channel, reading=False)
        channel.begun, channel.want = b"", 0

    def _lost(self, channel: Channel, call: Call) -> NoReturn:
        channel.lost = channel.lost or "it closed the connection"
        self._vigil.miss(channel, call)

    def _divert(self, channel: Channel, data: memoryview, head: bytes, call: Call) -> None:
        """Deal with a message that is not the awaited one; return if that may still come."""
        header = self._decoded(channel, data, call)
        channel.unread_first(data)
        if header.op == Op.GOODBYE:
            channel.finished = True
            self._lost(channel, call)
        if not self.serve(channel, header, call):
            self._vigil.mismatch(channel, str(decode(head)), str(header), call)

    def _decoded(self, channel: Channel, data: memoryview, call: Call) -> Header:
        try:
            return decode(data)
        except WireError as error:
            channel.lost = f"it sent {error}"
            self._vigil.miss(channel, call)


def _delivered(
    message: memoryview, into: Optional[memoryview], source: int, call: Call
) -> Optional[memoryview]:
    """Put a message where it was asked for, or return it where no place was given."""
    if into is None:
        return message
    if len(message) != len(into):
        raise LengthMismatch(call.op, source, len(into), len(message))
    into[:] = message
    return None
