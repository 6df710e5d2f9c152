"""The collectives that reduce: elements of all ranks become one.

They are floats of 16, 32 or 64 bits or integers; dtype="bf16" says that those of a uint16 array are
bfloat16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, Tuple

import numpy as np

from rlxdeploy.runtime.algorithm.elements import element_type, folded_type
from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.native_steps import split
from rlxdeploy.runtime.arrays import flatten, restored, write_back
from rlxdeploy.runtime.link.collectives import Collectives, Turnout
from rlxdeploy.runtime.messages import Messages
from rlxdeploy.runtime.vocabulary import Dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Reductions(Messages):
    """A rank that reduces; *deterministic* is the all_reduce mode of calls that choose none."""

    def __init__(
        self,
        wire: Collectives,
        timeout: float,
        on_close: Callable[[], None],
        *,
        deterministic: bool,
    ) -> None:
        super().__init__(wire, timeout, on_close)
        self._deterministic = deterministic

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


def _reducible(
    array: NDArray[Any], written: Optional[str], *, result: bool = True
) -> Tuple[NDArray[Any], Dtype]:
    """Return *array* flat, in the numpy dtype that it is folded as, and what it is on the wire."""
    flat = flatten(array, result=result)
    elements = element_type(flat.dtype, written)
    return flat.view(folded_type(elements)), elements
