"""What is not a collective on the native wire: messages, the heap, and taking leave."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Mapping

from rlxdeploy.runtime.algorithm.moves import Member
from rlxdeploy.runtime.algorithm.native_steps import Shape
from rlxdeploy.runtime.errors import NoLink
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.base import Call
from rlxdeploy.runtime.link.channel import Channel
from rlxdeploy.runtime.link.collectives import Collectives, Inadmissible
from rlxdeploy.runtime.link.drive import Driver
from rlxdeploy.runtime.link.errands import Errands
from rlxdeploy.runtime.link.heap import Heap
from rlxdeploy.runtime.link.inlet import Spin
from rlxdeploy.runtime.link.sockets import unsent
from rlxdeploy.runtime.link.tcp import Patience
from rlxdeploy.runtime.link.vigil import Vigil
from rlxdeploy.runtime.wire.control import LOST, Cause


class Correspondence(Collectives):
    """The part of a rank's end of a native group that the collectives stand on."""

    def __init__(
        self,
        shape: Shape,
        channels: Mapping[int, Channel],
        limits: Limits,
        patience: Patience,
        heap: Heap,
    ) -> None:
        self.shape = shape
        self.member = Member(shape.rank, shape.world, shape.star)
        self._limits, self._heap = limits, heap
        self._vigil = Vigil(shape.rank, channels, limits, patience.peer_timeout)
        self._driver = Driver(self._vigil, limits, Spin(patience.spin_s, patience.crowded))
        self._errands = Errands(self._driver, heap, limits)

    def send(self, to: int, tag: int, data: memoryview, call: Call) -> None:
        """Send a message; returns once its memory may change."""
        if len(data) > self._limits.max_payload:
            most = self._limits.max_payload
            raise Inadmissible(f"{call.op}: {len(data)} bytes; at most {most} go into a message")
        self._driver.send(self._linked(to), tag, data, call)

    def receive(self, source: int, tag: int, into: memoryview, call: Call) -> None:
        """Fill *into* with the next message, which must be of that size.

        A CollectiveTimeout leaves the group usable unless the message had begun to come.
        """
        self._driver.take(self._linked(source), tag, into, call)

    def take(self, source: int, tag: int, call: Call) -> memoryview:
        """Return the next message, of any length; lateness is as for `receive`."""
        message = self._driver.take(self._linked(source), tag, None, call)
        assert message is not None, "no place was given"  # noqa: S101 - cannot happen
        return message

    def put(self, to: int, offset: int, data: memoryview, call: Call) -> None:
        """Store *data* in the heap of rank *to*; returns once its memory may change."""
        window = self._window(offset, len(data), call)
        if to == self.shape.rank:
            window[:] = data
        else:
            self._errands.put(self._vigil.channels[self._linked(to)], offset, data, call)

    def get(self, source: int, offset: int, into: memoryview, call: Call) -> None:
        """Fill *into* from the heap of rank *source*."""
        window = self._window(offset, len(into), call)
        if source == self.shape.rank:
            into[:] = window
        else:
            self._errands.get(self._vigil.channels[self._linked(source)], offset, into, call)

    def watch(self, seconds: float) -> None:
        """Let *seconds* pass; raise PeerLost as soon as a rank is lost or leaves."""
        self._vigil.watch(seconds)

    def close(self) -> None:
        """Say goodbye, hand over what was sent, and end all links."""
        self._vigil.leave(None)
        self._part(self._limits.linger_s)

    def abort(self, why: str) -> None:
        """End all links at once; whoever waits for this rank wakes with PeerLost and *why*."""
        self._vigil.leave(Cause(LOST, self.shape.rank, why=f"it left the group: {why}"))
        self._part(self._limits.farewell_s)

    def _window(self, offset: int, length: int, call: Call) -> memoryview:
        window = self._heap.window(offset, length) if offset >= 0 else None
        if window is None:
            raise Inadmissible(
                f"{call.op}: {length} bytes at offset {offset} are not in a heap of "
                f"{self._heap.size}"
            )
        return window

    def _linked(self, rank: int) -> int:
        if rank not in self._vigil.channels:
            raise NoLink(self.shape.rank, rank)
        return rank

    def _part(self, seconds: float) -> None:
        """Let the kernel deliver what was sent: closing with unread bytes would throw it away."""
        until = monotonic() + seconds
        channels = list(self._vigil.channels.values())
        while monotonic() < until and any(unsent(channel.sock) for channel in channels):
            for channel in channels:
                channel.drain()
                channel.stash = memoryview(b"")
            sleep(0.001)
        for channel in channels:
            channel.sock.close()
