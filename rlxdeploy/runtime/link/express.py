"""all_reduce of arrays like those seen before, with everything prepared.

Programs reduce the same few shapes over and over, and below a megabyte the interpreter costs as
much as the kernel.  So what depends on the shape alone is worked out once.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Sequence

import numpy as np

from rlxdeploy.runtime.algorithm.native_fold import Fold
from rlxdeploy.runtime.algorithm.native_steps import Receive, Reduce, Schedule, Send
from rlxdeploy.runtime.link.base import Call, begin
from rlxdeploy.runtime.link.channel import SMALL, Channel
from rlxdeploy.runtime.link.drive import Driver, Job
from rlxdeploy.runtime.wire.header import HEADER_BYTES, WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DONTWAIT = socket.MSG_DONTWAIT
_PACK = WORDS.pack_into


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


class Small(Express):
    """A small array of any layout, in messages that are laid out once and sent in one piece.

    Does what the schedule of such a call says in as few operations as Python allows; what can wait
    is done while the answer is under way.
    """

    any_layout = True

    def __init__(
        self, driver: Driver, routine: Routine, channels: Sequence[Channel], like: NDArray[Any]
    ) -> None:
        super().__init__(driver, routine)
        self._channels, self._size = tuple(channels), like.nbytes
        self._message = bytearray(HEADER_BYTES + self._size)
        self._mine = self._payload(self._message, like)
        self._theirs = [self._payload(channel.whole, like) for channel in channels]

    def _begin(self, sequence: int, seconds: float) -> Call:
        size = self._size
        self._driver.vigil.current = (self._routine.word, sequence, size)
        return begin("all_reduce", seconds, whole=True)

    def _send(self, channel: Channel) -> int:
        """Send the message as far as the kernel takes it; return how far."""
        if channel.queue or channel.lost is not None:
            return 0
        try:
            return channel.send_bytes(self._message, _DONTWAIT)
        except OSError:
            # Whatever it is, sending the rest meets it again.
            return 0

    def _finish(self, channel: Channel, sent: int, call: Call) -> None:
        if sent != len(self._message):
            self._driver.post_rest(channel, bytes(self._message), sent, call)

    def _payload(self, message: bytearray, like: NDArray[Any]) -> NDArray[Any]:
        """Return the payload of a message as an array on the same memory."""
        flat: NDArray[Any] = np.frombuffer(message, np.uint8)[HEADER_BYTES:][: self._size]
        return flat.view(like.dtype).reshape(like.shape)


class Swap(Small):
    """Two ranks: a message each way, and both fold."""

    def __init__(
        self, driver: Driver, routine: Routine, channels: Sequence[Channel], like: NDArray[Any]
    ) -> None:
        super().__init__(driver, routine, channels, like)
        parts = (self._mine, self._theirs[0])
        self._parts = parts if driver.vigil.rank < channels[0].rank else parts[::-1]

    def reduce(self, array: NDArray[Any], sequence: int, seconds: float) -> None:
        """Reduce *array* in place within *seconds*; raises what `Driver.run` raises."""
        message, size, channel = self._message, self._size, self._channels[0]
        _PACK(message, 0, self._routine.word, sequence, size, size)
        self._mine[...] = array
        sent = self._send(channel)
        call = self._begin(sequence, seconds)
        self._finish(channel, sent, call)
        driver = self._driver
        driver.inlet.small(channel, bytes(message[:HEADER_BYTES]), size, call)
        if driver.sending:
            driver.flush(call)
        self._routine.fold(array, self._parts, self._routine.ranks)


class Hub(Small):
    """Rank 0 of a star: takes every rank's array, folds, and sends all the result."""

    def reduce(self, array: NDArray[Any], sequence: int, seconds: float) -> None:
        """Reduce *array* in place within *seconds*; raises what `Driver.run` raises."""
        message, size, driver = self._message, self._size, self._driver
        call = self._begin(sequence, seconds)
        _PACK(message, 0, self._routine.word, sequence, size, size)
        head, small = bytes(message[:HEADER_BYTES]), driver.inlet.small
        for channel in self._channels:
            small(channel, head, size, call)
        self._routine.fold(array, (array, *self._theirs), self._routine.ranks)
        self._mine[...] = array
        for channel in self._channels:
            self._finish(channel, self._send(channel), call)
        if driver.sending:
            driver.flush(call)


class Spoke(Small):
    """Any other rank of a star: sends its array and takes the result."""

    def reduce(self, array: NDArray[Any], sequence: int, seconds: float) -> None:
        """Reduce *array* in place within *seconds*; raises what `Driver.run` raises."""
        message, size, channel = self._message, self._size, self._channels[0]
        _PACK(message, 0, self._routine.word, sequence, size, size)
        self._mine[...] = array
        sent = self._send(channel)
        call = self._begin(sequence, seconds)
        self._finish(channel, sent, call)
        self._driver.inlet.small(channel, bytes(message[:HEADER_BYTES]), size, call)
        array[...] = self._theirs[0]
        if self._driver.sending:
            self._driver.flush(call)


def make_express(
    driver: Driver, routine: Routine, channels: Mapping[int, Channel], like: NDArray[Any]
) -> Express:
    """Return the quickest way for arrays *like* this one to follow the routine."""
    kinds = [type(step) for step in routine.steps]
    if like.nbytes > SMALL or like.dtype == np.float16 or not kinds:
        return Express(driver, routine)
    if kinds == [Send, Reduce] and len(channels) == 1:
        return Swap(driver, routine, tuple(channels.values()), like)
    if kinds == [Send, Receive]:
        return Spoke(driver, routine, (channels[0],), like)
    if kinds == [Reduce] + [Send] * len(channels):
        return Hub(driver, routine, tuple(channels.values()), like)
    return Express(driver, routine)
