"""What ranks of the native wire do for one another between the calls: puts, gets, late averages.

PUT carries its offset as the header's total; GET its length as the sequence, and is answered by
GOT with the bytes, or with sequence 1 where there are none.  A rank runs these errands whenever it
waits in a call.  The answer to a get may come behind messages of calls that the other rank is ahead
with: those are put aside and read again.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Dict

import numpy as np

from rlxdeploy.runtime.algorithm.moves import as_bytes
from rlxdeploy.runtime.errors import WireError
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.base import Call
from rlxdeploy.runtime.link.channel import Channel
from rlxdeploy.runtime.link.drive import Driver
from rlxdeploy.runtime.link.heap import Heap
from rlxdeploy.runtime.vocabulary import Op
from rlxdeploy.runtime.wire.header import Header

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Errands:
    """One rank's side of them; *heap* is what it offers."""

    def __init__(self, driver: Driver, heap: Heap, limits: Limits) -> None:
        self._driver, self._heap, self._limits = driver, heap, limits
        self._inlet, self._vigil = driver.inlet, driver.vigil
        self._inlet.errand = self.run
        # The most bytes that a rank may have sent to an average it came too late for.
        self._averaged = 0

    def run(self, channel: Channel, header: Header, call: Call) -> bool:
        """Serve the message that is next on *channel*; False if it is no errand."""
        if header.op == Op.PUT:
            self._store(channel, header, call)
        elif header.op == Op.GET:
            self._answer(channel, header, call)
        elif header.op == Op.AVERAGE and header.sequence < self._vigil.current[1]:
            self._bounded(channel, header, self._averaged, call)
            self._inlet.payload(channel, header, call)
        else:
            return False
        return True

    def put(self, channel: Channel, offset: int, data: memoryview, call: Call) -> None:
        """Store *data* in the heap of the rank at the other end."""
        header = Header(Op.PUT, length=len(data), total=offset)
        self._driver.post(channel, header.encode(), data, call)
        self._driver.flush(call, (channel,))

    def get(self, channel: Channel, offset: int, into: memoryview, call: Call) -> None:
        """Fill *into* from the heap of the rank at the other end."""
        ask = Header(Op.GET, sequence=len(into), total=offset)
        self._driver.post(channel, ask.encode(), memoryview(b""), call)
        aside = bytearray()
        while True:
            header = self._inlet.peek(channel, call)
            if header.op == Op.GOT:
                break
            if header.op >= Op.SEND:
                self._inlet.divert(channel, ask.encode(), call)
                continue
            if len(aside) + header.length > self._limits.max_unread:
                channel.lost = "it is too far ahead of a get"
                self._vigil.miss(channel, call)
            aside += header.encode() + self._inlet.payload(channel, header, call)
        if header.sequence or header.length != len(into):
            raise WireError(
                f"rank {channel.rank} ({channel.address}): its heap has no {len(into)} bytes at "
                f"offset {offset}"
            )
        self._inlet.payload_into(channel, into, call)
        channel.unread_first(memoryview(aside))

    def gather(
        self, head: bytes, like: NDArray[Any], seconds: float, call: Call
    ) -> Dict[int, NDArray[Any]]:
        """As rank 0, return the vectors with header *head* that come within *seconds*, by rank."""
        came: Dict[int, NDArray[Any]] = {}
        self._averaged = max(self._averaged, like.nbytes)
        end = min(monotonic() + seconds, call.deadline)
        while True:
            missing = [each for each in self._vigil.channels.values() if each.rank not in came]
            moved = [self._gather_one(each, head, like, came, call) for each in missing]
            left = end - monotonic()
            if not missing or (left <= 0 and not any(moved)):
                return came
            if not any(moved):
                self._vigil.doze(None, call, left)

    def _gather_one(
        self,
        channel: Channel,
        head: bytes,
        like: NDArray[Any],
        came: Dict[int, NDArray[Any]],
        call: Call,
    ) -> bool:
        header = self._vigil.look(channel, call)
        if header is None:
            return False
        if header.encode() == head:
            came[channel.rank] = np.empty_like(like)
            self._inlet.receive(channel, head, as_bytes(came[channel.rank]), call)
        else:
            self._inlet.divert(channel, head, call)
        return True

    def _answer(self, channel: Channel, header: Header, call: Call) -> None:
        self._bounded(channel, header, 0, call)
        self._inlet.payload(channel, header, call)
        found = self._heap.window(header.total, header.sequence)
        answer = Header(Op.GOT, sequence=found is None, total=header.total)
        data = bytes(found or b"")
        self._driver.entrust(channel, answer._replace(length=len(data)).encode(), data, call)

    def _bounded(self, channel: Channel, header: Header, most: int, call: Call) -> None:
        """Give no memory for a length that no rank of this group can have meant."""
        if header.length > most:
            channel.lost = f"it announced {header.length} bytes; at most {most} are accepted"
            self._vigil.miss(channel, call)

    def _store(self, channel: Channel, header: Header, call: Call) -> None:
        window = self._heap.window(header.total, header.length)
        if window is None:
            where = f"{header.length} bytes at offset {header.total}"
            channel.lost = f"it put {where} into a heap of {self._heap.size}"
            self._vigil.miss(channel, call)
        self._inlet.payload_into(channel, window, call)
