"""all_reduce of arrays like those seen before, with everything prepared.

Programs reduce the same few shapes over and over, and below a megabyte the interpreter costs as
much as the kernel.  So what depends on the shape alone is worked out once.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rlxdeploy.runtime.algorithm.native_fold import Fold
from rlxdeploy.runtime.algorithm.native_steps import Schedule
from rlxdeploy.runtime.link.base import begin
from rlxdeploy.runtime.link.channel import Channel
from rlxdeploy.runtime.link.drive import Driver, Job
from rlxdeploy.runtime.wire.header import HEADER_BYTES, WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DONTWAIT = socket.MSG_DONTWAIT


class Routine(NamedTuple):
    """What all arrays of one dtype and shape have in common, for one kind of reduction."""

    steps: Schedule
    word: int
    fold: Fold
    ranks: int


class Express:
    """Follows the schedule on the array's own memory, which must be contiguous."""

    any_layout = False

    def __init__(self, driver: Driver, routine: Routine) -> None:
        self._driver, self._routine = driver, routine

    def reduce(self, array: NDArray[Any], sequence: int, seconds: float) -> None:
        """Reduce *array* in place within *seconds*; raises what `Driver.run` raises."""
        steps, word, fold, ranks = self._routine
        flat = array.reshape(-1)
        memory = flat.view(np.uint8).data
        job = Job(steps, word, sequence, len(memory), (memory,), (flat,), fold, ranks)
        self._driver.run(job, begin("all_reduce", seconds, whole=True))


class Swap(Express):
    """Two ranks and one small array, of any layout: one message each way.

    Does what the schedule of such a call says in as few operations as Python allows; what can wait
    is done while the answer is under way.
    """

    any_layout = True

    def __init__(
        self, driver: Driver, routine: Routine, channel: Channel, like: NDArray[Any]
    ) -> None:
        super().__init__(driver, routine)
        self._channel, self._size = channel, like.nbytes
        self._message = bytearray(HEADER_BYTES + self._size)
        self._pack = WORDS.pack_into
        self._mine = self._payload(self._message, like)
        theirs = self._payload(channel.whole, like)
        lower = driver.vigil.rank < channel.rank
        self._parts = (self._mine, theirs) if lower else (theirs, self._mine)

    def reduce(self, array: NDArray[Any], sequence: int, seconds: float) -> None:
        """Reduce *array* in place within *seconds*; raises what `Driver.run` raises."""
        message, size, channel = self._message, self._size, self._channel
        word = self._routine.word
        self._pack(message, 0, word, sequence, size, size)
        self._mine[...] = array
        sent = 0
        if not channel.queue:
            try:  # noqa: SIM105 - suppress() costs a tenth of the whole call
                sent = channel.send_bytes(message, _DONTWAIT)
            except OSError:
                pass
        call = begin("all_reduce", seconds, whole=True)
        driver = self._driver
        driver.vigil.current = (word, sequence, size)
        if sent != len(message):
            driver.post_rest(channel, bytes(message), sent, call)
        driver.inlet.small(channel, bytes(message[:HEADER_BYTES]), size, call)
        if driver.sending:
            driver.flush(call)
        self._routine.fold(array, self._parts, self._routine.ranks)

    def _payload(self, message: bytearray, like: NDArray[Any]) -> NDArray[Any]:
        """Return the payload of a message as an array on the same memory."""
        flat: NDArray[Any] = np.frombuffer(message, np.uint8)[HEADER_BYTES:][: self._size]
        return flat.view(like.dtype).reshape(like.shape)
