"""The group a rank has joined: messages and collectives.

One thread uses a group.  Calls work in place on numpy arrays of any shape and strides.  Arguments
no group could carry out are a ValueError or TypeError and change nothing.  Any other failure
finishes the group: the links close, the other ranks wake, and later calls raise GroupClosed.
Only a `recv` or `recv_bytes` that times out leaves the group usable.

Where elements are reduced they are floats of 16, 32 or 64 bits or integers; dtype="bf16" says that
those of a uint16 array are bfloat16.
"""

from __future__ import annotations

from collections import deque
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Deque,
    Dict,
    Iterable,
    List,
    Optional,
    Sequence,
    Tuple,
    Union,
    final,
)

import numpy as np

from rlxdeploy.runtime.algorithm.elements import element_type, folded_type
from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.moves import as_bytes
from rlxdeploy.runtime.algorithm.native_steps import split
from rlxdeploy.runtime.arrays import flatten, restored, write_back
from rlxdeploy.runtime.errors import LengthMismatch
from rlxdeploy.runtime.link.collectives import Collectives, Turnout
from rlxdeploy.runtime.onesided import OneSided
from rlxdeploy.runtime.vocabulary import Dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray


@final
class ProcessGroup(OneSided):
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
        super().__init__(wire, timeout, on_close)
        self._deterministic = deterministic
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

    def all_reduce(
        self,
        array: NDArray[Any],
        kind: ReduceKind = ReduceKind.SUM,
        timeout: Optional[float] = None,
        *,
        deterministic: Optional[bool] = None,
        dtype: Optional[str] = None,
    ) -> NDArray[Any]:
        """Reduce *array* over all ranks, in place; return it.

        All ranks end with the same bits.  Deterministic mode, on either wire, folds float32 in
        float64 and rounds once; other dtypes and other calls have no such mode.  Every rank must
        choose alike.
        """
        exact = self._deterministic if deterministic is None else deterministic
        if dtype is None and not exact and self._express(array, kind, timeout):
            return array
        call = self._begin("all_reduce", timeout, whole=True)
        flat, elements = _reducible(array, dtype)
        chosen = ReduceKind(kind)
        self._guard(call, lambda: self._wire.all_reduce(flat, chosen, elements, call, exact=exact))
        write_back(flat, array)
        return array

    def all_reduce_typed(
        self,
        array: NDArray[Any],
        kind: ReduceKind = ReduceKind.SUM,
        timeout: Optional[float] = None,
        *,
        dtype: Optional[str] = None,
    ) -> NDArray[Any]:
        """Do as `all_reduce`, on the rlx wire with the rounding of upstream's typed variant."""
        call = self._begin("all_reduce_typed", timeout, whole=True)
        flat, elements = _reducible(array, dtype)
        chosen = ReduceKind(kind)
        self._guard(call, lambda: self._wire.all_reduce_typed(flat, chosen, elements, call))
        write_back(flat, array)
        return array

    def reduce(
        self,
        array: NDArray[Any],
        root: int = 0,
        kind: ReduceKind = ReduceKind.SUM,
        timeout: Optional[float] = None,
        *,
        dtype: Optional[str] = None,
    ) -> NDArray[Any]:
        """Reduce *array* over all ranks into that of *root*; the others' stay as they are."""
        call = self._begin("reduce", timeout, root, whole=True)
        flat, elements = _reducible(array, dtype, result=self.rank == root)
        chosen = ReduceKind(kind)
        self._guard(call, lambda: self._wire.reduce(flat, root, chosen, elements, call))
        if self.rank == root:
            write_back(flat, array)
        return array

    def reduce_scatter(
        self,
        array: NDArray[Any],
        kind: ReduceKind = ReduceKind.SUM,
        timeout: Optional[float] = None,
        *,
        dtype: Optional[str] = None,
    ) -> NDArray[Any]:
        """Reduce *array*, flat, over all ranks; return this rank's part of the result.

        Parts are near-equal, the first ones an element longer; *array* stays as it is.
        """
        call = self._begin("reduce_scatter", timeout, whole=True)
        flat, elements = _reducible(array, dtype, result=False)
        start, stop = split(0, flat.size, self.world, 1)[self.rank]
        out = np.empty(stop - start, flat.dtype)
        chosen = ReduceKind(kind)
        self._guard(call, lambda: self._wire.reduce_scatter(flat, out, chosen, elements, call))
        return restored(out, array.dtype)

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

    def federated_average(
        self,
        array: NDArray[Any],
        deadline: float,
        timeout: Optional[float] = None,
        *,
        dtype: Optional[str] = None,
    ) -> Turnout:
        """Average *array*, of floats, over the ranks that take part in time, in place.

        Rank 0 waits *deadline* seconds for the others.  All end with the average; who came late
        too, and its array counts in no later round.  *timeout* is what the call may take beyond
        the deadline.
        """
        bound = (self._timeout if timeout is None else timeout) + deadline
        call = self._begin("federated_average", bound, whole=True)
        flat, elements = _reducible(array, dtype)
        turnout = self._guard(
            call, lambda: self._wire.federated_average(flat, elements, deadline, call)
        )
        write_back(flat, array)
        return turnout

    def _express(self, array: NDArray[Any], kind: ReduceKind, timeout: Optional[float]) -> bool:
        """Make an all_reduce the quickest way, if there is one for this call."""
        if self._ended is not None or type(array) is not np.ndarray or not array.flags.writeable:
            return False
        try:
            return self._wire.express(array, kind, self._timeout if timeout is None else timeout)
        except BaseException as error:
            self._abort(f"all_reduce failed: {error}")
            raise

    def _from_self(self, tag: int) -> bytes:
        waiting = self._to_self.get(tag)
        if not waiting:
            raise ValueError(f"this rank has sent itself nothing with tag {tag}")
        return waiting.popleft()


def _reducible(
    array: NDArray[Any], written: Optional[str], *, result: bool = True
) -> Tuple[NDArray[Any], Dtype]:
    """Return *array* flat, in the numpy dtype that it is folded as, and what it is on the wire."""
    flat = flatten(array, result=result)
    elements = element_type(flat.dtype, written)
    return flat.view(folded_type(elements)), elements


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
