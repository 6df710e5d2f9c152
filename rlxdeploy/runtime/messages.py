"""Messages from rank to rank: what a collective is to all, these are to two."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, Optional, Union

from rlxdeploy.runtime.algorithm.moves import as_bytes
from rlxdeploy.runtime.arrays import flatten, write_back
from rlxdeploy.runtime.errors import LengthMismatch
from rlxdeploy.runtime.link.collectives import Collectives
from rlxdeploy.runtime.onesided import OneSided

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Messages(OneSided):
    """A rank that can send and receive; what it sends to itself waits until it is received."""

    def __init__(self, wire: Collectives, timeout: float, on_close: Callable[[], None]) -> None:
        super().__init__(wire, timeout, on_close)
        self._to_self: Dict[int, Deque[bytes]] = {}

    def send(self, to: int, tag: int, array: NDArray[Any], timeout: Optional[float] = None) -> None:
        """Send the elements of *array* to rank *to*; returns once its memory may change."""
        self.send_bytes(to, tag, as_bytes(flatten(array)), timeout)

    def recv(
        self, source: int, tag: int, into: NDArray[Any], timeout: Optional[float] = None
    ) -> None:
        """Fill *into* with the next message from *source* with *tag*; it must be of that size."""
        call = self._begin(f"recv from rank {source}", timeout, source, tag)
        flat = flatten(into, result=True)
        place = as_bytes(flat)
        if source == self.rank:
            message = self._from_self(tag)
            if len(message) != flat.nbytes:
                raise LengthMismatch(call.op, source, flat.nbytes, len(message))
            place[:] = message
        else:
            self._guard(
                call, lambda: self._wire.receive(source, tag, place, call), usable_when_late=True
            )
        write_back(flat, into)

    def send_bytes(
        self,
        to: int,
        tag: int,
        data: Union[bytes, bytearray, memoryview],
        timeout: Optional[float] = None,
    ) -> None:
        """Send *data* to rank *to*; returns once its memory may change."""
        call = self._begin(f"send to rank {to}", timeout, to, tag)
        if to == self.rank:
            self._to_self.setdefault(tag, deque()).append(bytes(data))
            return
        whole = memoryview(data).cast("B")
        self._guard(call, lambda: self._wire.send(to, tag, whole, call))

    def recv_bytes(self, source: int, tag: int, timeout: Optional[float] = None) -> bytes:
        """Return the next message from *source* with *tag*."""
        call = self._begin(f"recv from rank {source}", timeout, source, tag)
        if source == self.rank:
            return self._from_self(tag)
        message = self._guard(
            call, lambda: self._wire.take(source, tag, call), usable_when_late=True
        )
        return bytes(message)

    def _from_self(self, tag: int) -> bytes:
        waiting = self._to_self.get(tag)
        if not waiting:
            raise ValueError(f"this rank has sent itself nothing with tag {tag}")
        return waiting.popleft()
