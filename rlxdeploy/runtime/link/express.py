"""Two ranks and one small array: a message each way, with everything prepared.

At these sizes the interpreter costs as much as the kernel, so this does what the schedule of such a
call says in as few operations as Python allows, and what can wait is done while the answer is
under way.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, Tuple

import numpy as np

from rlxdeploy.runtime.algorithm.native_fold import Fold
from rlxdeploy.runtime.link.base import begin
from rlxdeploy.runtime.link.channel import Channel
from rlxdeploy.runtime.link.drive import Driver
from rlxdeploy.runtime.wire.header import HEADER_BYTES, WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DONTWAIT = socket.MSG_DONTWAIT


class Express:
    """all_reduce of arrays of one dtype and shape between this rank and that of *channel*."""

    def __init__(
        self,
        driver: Driver,
        channel: Channel,
        word: int,
        like: Tuple[np.dtype[Any], Tuple[int, ...]],
        folding: Tuple[Fold, int],
    ) -> None:
        dtype, shape = like
        self._size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._driver, self._channel, self._word = driver, channel, word
        self._fold, self._ranks = folding
        self._message = bytearray(HEADER_BYTES + self._size)
        self._pack = WORDS.pack_into
        self._mine = _payload(self._message, dtype, shape, self._size)
        theirs = _payload(channel.whole, dtype, shape, self._size)
        lower = driver.vigil.rank < channel.rank
        self._parts = (self._mine, theirs) if lower else (theirs, self._mine)

    def reduce(self, array: NDArray[Any], sequence: int, seconds: float) -> None:
        """Reduce *array* in place within *seconds*; raises what `Driver.run` raises."""
        message, size, channel = self._message, self._size, self._channel
        self._pack(message, 0, self._word, sequence, size, size)
        self._mine[...] = array
        sent = 0
        if not channel.queue:
            try:  # noqa: SIM105 - suppress() costs a tenth of the whole call
                sent = channel.send_bytes(message, _DONTWAIT)
            except OSError:
                pass
        call = begin("all_reduce", seconds, whole=True)
        driver = self._driver
        driver.vigil.current = (self._word, sequence, size)
        if sent != len(message):
            driver.post_rest(channel, bytes(message), sent, call)
        driver.inlet.small(channel, bytes(message[:HEADER_BYTES]), size, call)
        if driver.sending:
            driver.flush(call)
        try:
            self._fold(array, self._parts, self._ranks)
        except (FloatingPointError, RuntimeWarning):
            # What overflows becomes infinite, as in any sum of floats, even where the program
            # makes numpy raise: one rank must not fail for what all ranks see.
            with np.errstate(all="ignore"):
                self._fold(array, self._parts, self._ranks)


def _payload(
    message: bytearray, dtype: np.dtype[Any], shape: Tuple[int, ...], size: int
) -> NDArray[Any]:
    """Return the payload of a message as an array on the same memory."""
    flat: NDArray[Any] = np.frombuffer(message, np.uint8)[HEADER_BYTES : HEADER_BYTES + size]
    return flat.view(dtype).reshape(shape)
