"""Links within one process, each rank a thread: the algorithms' proving ground."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from typing import Counter as Counts
from typing import Deque, Dict, List, Sequence, Tuple

from rlxdeploy.runtime.algorithm.moves import Member, Receive, Send
from rlxdeploy.runtime.errors import CollectiveTimeout, LengthMismatch, NoLink, PeerLost
from rlxdeploy.runtime.link.base import Call, Links
from rlxdeploy.runtime.link.heap import Heap
from rlxdeploy.runtime.wire.frame import MAX_FRAME

_HEAP_BYTES = 1 << 20
_Key = Tuple[int, int, int]


class Hub:
    """What the ranks of one process share: a queue for each (from, to, tag)."""

    def __init__(self, world: int, *, star: bool = False) -> None:
        self.world, self.star = world, star
        self.changed = threading.Condition()
        self.queues: Dict[_Key, Deque[bytes]] = {}
        self.left: List[int] = []
        self.heaps = [Heap(_HEAP_BYTES) for _ in range(world)]
        self.unwanted: Counts[_Key] = Counter()

    def links(self) -> List[MemoryLinks]:
        """Return the links of every rank, by rank."""
        hub = self.star and self.world > 2  # noqa: PLR2004 - two ranks have all their links
        return [MemoryLinks(self, Member(rank, self.world, hub)) for rank in range(self.world)]


class MemoryLinks(Links):
    """One rank's view of a hub."""

    max_message = MAX_FRAME

    def __init__(self, hub: Hub, member: Member) -> None:
        self._hub, self.member = hub, member
        self.heap = hub.heaps[member.rank]

    def post(self, send: Send, call: Call) -> None:
        """Copy the message into the receiver's queue."""
        with self._hub.changed:
            self._linked(send.to)
            if send.to in self._hub.left:
                self._raise_lost(call)
            key = (self.member.rank, send.to, send.tag)
            if self._hub.unwanted[key]:
                self._hub.unwanted[key] -= 1
                return
            self._hub.queues.setdefault(key, deque()).append(bytes(send.data))
            self._hub.changed.notify_all()

    def entrust(self, send: Send, call: Call) -> None:
        """Copy the message into the receiver's queue."""
        self.post(send, call)

    def put(self, to: int, offset: int, data: memoryview, call: Call) -> None:
        """Write into the other rank's heap."""
        with self._hub.changed:
            self._linked(to)
            if to in self._hub.left:
                self._raise_lost(call)
            window = self._hub.heaps[to].window(offset, len(data))
            if window is not None:
                window[:] = data

    def get(self, source: int, offset: int, into: memoryview, call: Call) -> None:
        """Read the other rank's heap."""
        with self._hub.changed:
            self._linked(source)
            if source in self._hub.left:
                self._raise_lost(call)
            window = self._hub.heaps[source].window(offset, len(into))
            if window is not None:
                into[:] = window

    def collect(self, receives: Sequence[Receive], call: Call) -> None:
        """Take the messages one after the other."""
        for receive in receives:
            message = self.take(receive.source, receive.tag, call)
            if len(message) != len(receive.into):
                raise LengthMismatch(call.op, receive.source, len(receive.into), len(message))
            receive.into[:] = message

    def take(self, source: int, tag: int, call: Call) -> memoryview:
        """Wait for the queue to hold a message."""
        self._linked(source)
        key = (source, self.member.rank, tag)
        with self._hub.changed:
            while not self._hub.queues.get(key):
                if source in self._hub.left or (call.whole and self._hub.left):
                    self._raise_lost(call)
                left = call.deadline - time.monotonic()
                if left <= 0:
                    raise CollectiveTimeout(call.op, call.seconds, [source])
                self._hub.changed.wait(left)
            return memoryview(self._hub.queues[key].popleft())

    def gather(
        self, sources: Sequence[int], tag: int, until: float, call: Call
    ) -> Dict[int, memoryview]:
        """Take what is there in time, one source after the other."""
        came: Dict[int, memoryview] = {}
        for source in sources:
            try:
                came[source] = self.take(source, tag, call._replace(deadline=until))
            except CollectiveTimeout:
                with self._hub.changed:
                    self._hub.unwanted[(source, self.member.rank, tag)] += 1
        return came

    def flush(self, call: Call) -> None:
        """Do nothing: posting copies."""

    def watch(self, seconds: float) -> None:
        """Wait for a rank to leave."""
        call = Call("waiting", seconds, time.monotonic() + seconds)
        with self._hub.changed:
            if self._hub.changed.wait_for(lambda: self._hub.left, seconds):
                self._raise_lost(call)

    def close(self) -> None:
        """Leave the hub; what was sent can still be received."""
        with self._hub.changed:
            if self.member.rank not in self._hub.left:
                self._hub.left.append(self.member.rank)
            self._hub.changed.notify_all()

    def abort(self) -> None:
        """Leave the hub."""
        self.close()

    def _linked(self, other: int) -> None:
        if self.member.hub and other and self.member.rank:
            raise NoLink(self.member.rank, other)

    def _raise_lost(self, call: Call) -> None:
        rank = self._hub.left[0]
        raise PeerLost(rank, "memory", call.op, "it left the hub")
