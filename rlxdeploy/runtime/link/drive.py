"""The loop that carries out a schedule over the channels of one rank: one thread, no allocation."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from rlxdeploy.runtime.algorithm.native_fold import Fold, no_fold
from rlxdeploy.runtime.algorithm.native_steps import Copy, Receive, Reduce, Schedule, Send
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.base import Call
from rlxdeploy.runtime.link.channel import SMALL, Channel
from rlxdeploy.runtime.link.inlet import Inlet, Spin
from rlxdeploy.runtime.link.vigil import Vigil
from rlxdeploy.runtime.vocabulary import Op
from rlxdeploy.runtime.wire.header import HEADER_BYTES, WORDS, Header

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Job(NamedTuple):
    """One call: its schedule, its header (without a length) and what it works on.

    *memory* and *arrays* are RESULT, INPUT and KEPT as bytes and as elements; *ranks* is the
    divisor of a mean, or 0.
    """

    steps: Schedule
    word: int
    sequence: int
    total: int
    memory: Sequence[memoryview]
    arrays: Sequence[NDArray[Any]] = ()
    fold: Fold = no_fold
    ranks: int = 0


class Driver:
    """Carries out one job at a time; *vigil* knows the channels and what to do when one fails.

    Every method raises PeerLost, CollectiveTimeout, CollectiveMismatch or WireError, after which
    the channels are of no more use.
    """

    def __init__(self, vigil: Vigil, limits: Limits, spin: Spin) -> None:
        self.vigil, self.sending, self._spin_s = vigil, vigil.sending, spin.seconds
        self._limits = limits
        self._rank, self._channels = vigil.rank, vigil.channels
        self.inlet = Inlet(vigil, limits, spin)
        self._scratch: NDArray[np.uint8] = np.empty(0, np.uint8)

    def run(self, job: Job, call: Call) -> None:
        """Carry out *job*; when this returns its memory is the caller's again."""
        steps, word, sequence, total, memory = job[:5]
        self.vigil.current = (word, sequence, total)
        channels, receive, pack = self._channels, self.inlet.receive, WORDS.pack
        heads: Dict[int, bytes] = {}
        for step in steps:
            if type(step) is Copy:
                source, start, stop, where, at = step
                memory[where][at : at + stop - start] = memory[source][start:stop]
                continue
            _, where, start, stop = step[:4]
            head = heads.get(stop - start)
            if head is None:
                head = heads[stop - start] = pack(word, sequence, stop - start, total)
            if type(step) is Send:
                self.post(channels[step.to], head, memory[where][start:stop], call)
            elif type(step) is Receive:
                receive(channels[step.source], head, memory[where][start:stop], call)
            elif type(step) is Reduce:
                self._reduce(step, job, head, call)
        if self.sending:
            self.flush(call)

    def post_rest(self, channel: Channel, message: bytes, sent: int, call: Call) -> None:
        """Queue what is left of a whole *message* of which the kernel took *sent* bytes."""
        whole = memoryview(message)
        channel.resume(whole[:HEADER_BYTES], whole[HEADER_BYTES:], sent)
        self._queued(channel, call)

    def send(self, to: int, tag: int, data: memoryview, call: Call) -> None:
        """Send a message to rank *to*; returns once its memory may change."""
        header = Header(Op.SEND, root=tag, length=len(data), total=len(data))
        channel = self._channels[to]
        self.post(channel, header.encode(), data, call)
        self.flush(call, (channel,))

    def entrust(self, channel: Channel, head: bytes, data: bytes, call: Call) -> None:
        """Send what nobody waits for: it goes out while later calls wait.

        PeerLost where too much waits already: the rank has not read for that long.
        """
        if sum(len(piece) for piece, _ in channel.queue) > self._limits.max_unread:
            channel.lost = f"over {self._limits.max_unread} bytes wait that it does not read"
            self.vigil.miss(channel, call)
        self.post(channel, head, memoryview(data), call)

    def take(
        self, source: int, tag: int, into: Optional[memoryview], call: Call
    ) -> Optional[memoryview]:
        """Receive the next message with *tag* from *source* into *into*, or return it.

        A CollectiveTimeout leaves the channels usable unless the message had begun to come.
        """
        return self.inlet.take(self._channels[source], tag, into, call)

    def flush(self, call: Call, channels: Optional[Sequence[Channel]] = None) -> None:
        """Wait until everything queued, for *channels* if given, is out of the caller's memory."""
        vigil = self.vigil
        spin_until = monotonic() + self._spin_s
        while True:
            vigil.push(call)
            full = [each for each in self.sending if channels is None or each in channels]
            if not full:
                return
            if monotonic() > spin_until:
                vigil.sleep(None, call, [channel.rank for channel in full])

    def post(self, channel: Channel, head: bytes, data: memoryview, call: Call) -> None:
        """Begin to send a message; its memory must stay as it is until `flush`."""
        if channel.send(head, data):
            self._queued(channel, call)

    def _queued(self, channel: Channel, call: Call) -> None:
        if channel.lost is not None:
            self.vigil.bury(channel, call)
            self.vigil.miss(channel, call)
        if channel not in self.sending:
            self.sending.append(channel)

    def _reduce(self, step: Reduce, job: Job, head: bytes, call: Call) -> None:
        sources, where, start, stop, last, fence = step
        size, array = stop - start, job.arrays[where]
        unit = array.itemsize
        own = array[start // unit : stop // unit]
        if size <= SMALL:
            parts = [self._small_part(source, head, size, array.dtype, call) for source in sources]
        else:
            parts = []
            for source, part in zip(sources, self._room(len(sources), size)):
                self.inlet.receive(self._channels[source], head, part.data, call)
                parts.append(part.view(array.dtype))
        # Two operands in the order of ranks, as both ends may fold; of more, the own one first.
        parts.insert(len(parts) == 1 and sources[0] < self._rank, own)
        if fence and self.sending:
            self.flush(call)
        job.fold(own, parts, job.ranks if last else 0)

    def _small_part(
        self, source: int, head: bytes, size: int, dtype: np.dtype[Any], call: Call
    ) -> NDArray[Any]:
        """Return what came, in the memory it came into: every channel has its own."""
        channel = self._channels[source]
        self.inlet.small(channel, head, size, call)
        part: NDArray[Any] = channel.payload[:size].view(dtype)
        return part

    def _room(self, count: int, size: int) -> List[NDArray[Any]]:
        """Return *count* pieces of memory that is kept from call to call."""
        pitch = 64 * (1 + size // 64)
        if self._scratch.size < count * pitch:
            self._scratch = np.empty(count * pitch, np.uint8)
        return [self._scratch[at : at + size] for at in range(0, count * pitch, pitch)]
