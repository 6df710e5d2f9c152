"""The vocabulary of collectives.

A Send is only begun: its bytes must not change before a Flush or the end of the collective, unless
what is received later proves that they have arrived.  A Receive and a Collect are over when all
bytes are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, NamedTuple, Optional, Tuple, Union

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Member(NamedTuple):
    """Which rank of how many; *hub* where every link leads to rank 0 and some ranks have none."""

    rank: int
    world: int
    hub: bool = False

    @property
    def others(self) -> Tuple[int, ...]:
        """Every other rank, ascending."""
        return tuple(rank for rank in range(self.world) if rank != self.rank)


class Send(NamedTuple):
    """Send *data* to rank *to*."""

    to: int
    tag: int
    data: memoryview


class Receive(NamedTuple):
    """Receive exactly as many bytes as *into* holds from rank *source*."""

    source: int
    tag: int
    into: memoryview


class Collect(NamedTuple):
    """Carry out all *receives*, in whichever order the bytes come; the sources differ."""

    receives: Tuple[Receive, ...]


class Gather(NamedTuple):
    """Put into *came* the messages of any length that are there within *seconds*, by source.

    Those that come later are thrown away, whatever is asked for meanwhile.  Without *seconds* all
    must come while the call lasts.
    """

    sources: Tuple[int, ...]
    tag: int
    seconds: Optional[float]
    came: Dict[int, memoryview]


class Entrust(NamedTuple):
    """Send *data*, which stays as it is for good: nothing waits until it has gone."""

    to: int
    tag: int
    data: memoryview


class Flush(NamedTuple):
    """Wait until all that was begun to be sent is out of the caller's memory."""


Move = Union[Send, Receive, Collect, Gather, Entrust, Flush]
Moves = Iterator[Move]


def as_bytes(array: NDArray[Any]) -> memoryview:
    """Return the memory of a flat, contiguous array."""
    memory: memoryview = array.view(np.uint8).data
    return memory


class Scratch:
    """Memory kept from call to call; what `take` gave before is overwritten by the next."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def take(self, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return *count* elements of uninitialised memory."""
        size = count * dtype.itemsize
        if self._memory.size < size:
            self._memory = np.empty(size, np.uint8)
        taken: NDArray[Any] = self._memory[:size].view(dtype)
        return taken
