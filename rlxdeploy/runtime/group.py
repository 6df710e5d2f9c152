"""The group a rank has joined: messages and collectives.

One thread uses a group.  Calls work in place on numpy arrays of any shape and strides.  Arguments
no group could carry out are a ValueError or TypeError and change nothing.  Any other failure
finishes the group: the links close, the other ranks wake, and later calls raise GroupClosed.
Only a `recv` or `recv_bytes` that times out leaves the group usable.

Where elements are reduced they are floats of 16, 32 or 64 bits or integers; dtype="bf16" says that
those of a uint16 array are bfloat16.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Iterable,
    List,
    Optional,
    Sequence,
    Tuple,
    final,
)

import numpy as np

from rlxdeploy.runtime.arrays import flatten, restored, write_back
from rlxdeploy.runtime.link.collectives import Collectives
from rlxdeploy.runtime.reductions import Reductions

if TYPE_CHECKING:
    from numpy.typing import NDArray


@final
class ProcessGroup(Reductions):
    """All ranks of a job, seen from one of them.

    *timeout* (seconds) bounds every call that names none of its own; *deterministic* is the
    all_reduce mode of calls that choose none; *on_close* is called once, when the group ends.
    """

    def __init__(
        self,
        wire: Collectives,
        *,
        timeout: float = 120.0,
        deterministic: bool = False,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(wire, timeout, on_close, deterministic=deterministic)

    def barrier(self, timeout: Optional[float] = None) -> None:
        """Wait until every rank has called this."""
        call = self._begin("barrier", timeout, whole=True)
        self._guard(call, lambda: self._wire.barrier(call))

    def broadcast(
        self, array: NDArray[Any], root: int = 0, timeout: Optional[float] = None
    ) -> None:
        """Give every rank the *array* of rank *root*, which is the same size everywhere."""
        call = self._begin("broadcast", timeout, root)
        flat = flatten(array, result=self.rank != root)
        self._guard(call, lambda: self._wire.broadcast(flat, root, call))
        if self.rank != root:
            write_back(flat, array)

    def all_gather(
        self,
        array: NDArray[Any],
        out: Optional[NDArray[Any]] = None,
        timeout: Optional[float] = None,
    ) -> NDArray[Any]:
        """Return every rank's *array*, stacked by rank, in *out* if given; sizes are equal."""
        call = self._begin("all_gather", timeout, whole=True)
        flat = flatten(array)
        shape = (self.world, *array.shape)
        result = np.empty(shape, array.dtype) if out is None else out
        if result.shape != shape or result.dtype != array.dtype:
            raise ValueError(f"all_gather: out must be {array.dtype} of shape {shape}")
        whole = flatten(result, result=True)
        self._guard(call, lambda: self._wire.all_gather(flat, whole, call))
        write_back(whole, result)
        return result

    def all_to_all(self, array: NDArray[Any], timeout: Optional[float] = None) -> NDArray[Any]:
        """Send array[i] to rank i; return an array whose row i came from rank i.

        *array* has as many rows as there are ranks.
        """
        call = self._begin("all_to_all", timeout, whole=True)
        flat = flatten(array)
        if array.shape[:1] != (self.world,):
            raise ValueError(f"all_to_all: {array.shape} has not {self.world} rows, one a rank")
        out = np.empty(flat.size, flat.dtype)
        self._guard(call, lambda: self._wire.all_to_all(flat, out, call))
        return restored(out, array.dtype).reshape(array.shape)

    def all_to_all_v(
        self, parts: Sequence[NDArray[Any]], timeout: Optional[float] = None
    ) -> List[NDArray[Any]]:
        """Send parts[i], of any length, to rank i; return what came, flat, by rank.

        All parts on all ranks have one dtype.
        """
        call = self._begin("all_to_all_v", timeout, whole=True)
        rows = [flatten(part) for part in parts]
        if len(rows) != self.world or len({row.dtype for row in rows}) != 1:
            raise ValueError(f"all_to_all_v: needs {self.world} parts of one dtype, one a rank")
        got = self._guard(call, lambda: self._wire.all_to_all_v(rows, call))
        return [restored(row, parts[0].dtype) for row in got]

    def ppermute(
        self,
        array: NDArray[Any],
        pairs: Iterable[Tuple[int, int]],
        timeout: Optional[float] = None,
    ) -> NDArray[Any]:
        """Send *array* along each (source, destination); return what came, zeros if nothing did.

        Every rank names the same pairs; no rank is twice a source or twice a destination.
        """
        call = self._begin("ppermute", timeout, whole=True)
        routes = _permutation(pairs, self.world)
        flat = flatten(array)
        out = np.zeros(flat.size, flat.dtype)
        self._guard(call, lambda: self._wire.ppermute(flat, out, routes, call))
        return restored(out, array.dtype).reshape(array.shape)


def _permutation(pairs: Iterable[Tuple[int, int]], world: int) -> Tuple[Tuple[int, int], ...]:
    routes = tuple((int(source), int(to)) for source, to in pairs)
    ranks = [rank for pair in routes for rank in pair]
    once = all(len(set(side)) == len(routes) for side in zip(*routes))
    if not once or not all(0 <= rank < world for rank in ranks):
        raise ValueError(
            f"ppermute: {routes} must be pairs of ranks 0..{world - 1}, each rank at most once a "
            "source and at most once a destination"
        )
    return routes
