"""What a reduction does to the ranks' elements, for every dtype of the native wire.

16-bit floats are widened to float32, folded and rounded once, in blocks that stay in the cache.
Integers wrap as numpy's do; their mean rounds half away from zero.  In MAX and MIN a NaN loses to
a number.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Callable, Dict, Sequence

import numpy as np

from rlxdeploy.runtime.algorithm import bfloat16, float16
from rlxdeploy.runtime.vocabulary import Dtype, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Out, the parts to fold (out itself first, unless there are only two), and the number of ranks
# where a mean is to be taken, else 0.
Fold = Callable[["NDArray[Any]", Sequence["NDArray[Any]"], int], None]

_UFUNCS: Dict[int, np.ufunc] = {
    Kind.SUM: np.add,
    Kind.MEAN: np.add,
    Kind.MAX: np.fmax,
    Kind.MIN: np.fmin,
}
# What overflows becomes infinite, as in any sum of floats.  Where a program makes numpy raise, one
# rank must not fail for what all ranks see; numpy raises only once the result is there.
_NOTICES = (FloatingPointError, RuntimeWarning)
# Three blocks of float32 and two of 16 bits stay in the L2 cache of a small core.
_BLOCK = 16384


def make_fold(kind: int, dtype: int, *, exact: bool = False) -> Fold:
    """Return how parts of *dtype* (bfloat16 as uint16) become one.

    *exact* folds float32 in float64 and rounds once.
    """
    ufunc = _UFUNCS[kind]
    if exact:
        return _Narrow(ufunc, _widen, _round, np.float64)
    if dtype == Dtype.FLOAT16:
        return _Narrow(ufunc, float16.widen_into, _round)
    if dtype == Dtype.BFLOAT16:
        return _Narrow(ufunc, bfloat16.widen_into, bfloat16.narrow_into)
    mean = _mean_float if dtype in {Dtype.FLOAT32, Dtype.FLOAT64} else _mean_integer

    def fold(out: NDArray[Any], parts: Sequence[NDArray[Any]], ranks: int) -> None:
        try:  # noqa: SIM105 - suppress() costs as much as a small sum
            ufunc(parts[0], parts[1], out=out)
        except _NOTICES:
            pass
        for part in parts[2:]:
            with contextlib.suppress(*_NOTICES):
                ufunc(out, part, out=out)
        if ranks:
            with contextlib.suppress(*_NOTICES):
                mean(out, ranks)

    return fold


def _mean_float(total: NDArray[Any], ranks: int) -> None:
    np.divide(total, total.dtype.type(ranks), out=total)


def _mean_integer(total: NDArray[Any], ranks: int) -> None:
    negative = total < 0
    size = total.astype(np.int64).view(np.uint64) if total.dtype.kind == "i" else total
    size = np.where(negative, np.uint64(0) - size.astype(np.uint64), size.astype(np.uint64))
    count = np.uint64(ranks)
    quotient = size // count
    rest = size - quotient * count
    quotient += rest >= count - rest
    signed = np.where(negative, np.uint64(0) - quotient, quotient)
    total[...] = signed.astype(total.dtype)


def no_fold(_out: NDArray[Any], _parts: Sequence[NDArray[Any]], _ranks: int) -> None:
    """Stand in where nothing is reduced."""
    raise AssertionError("this call reduces nothing")


class _Narrow:
    """Fold narrow floats: widen a block of every part, fold, round once."""

    def __init__(
        self,
        ufunc: np.ufunc,
        widen: Callable[[NDArray[Any], NDArray[Any]], None],
        narrow: Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], None],
        wide: Any = np.float32,  # noqa: ANN401 - what numpy takes for a dtype
    ) -> None:
        self._ufunc, self._widen, self._narrow = ufunc, widen, narrow
        self._total = np.empty(_BLOCK, wide)
        self._part = np.empty(_BLOCK, wide)

    def __call__(self, out: NDArray[Any], parts: Sequence[NDArray[Any]], ranks: int) -> None:
        with np.errstate(all="ignore"):
            for start in range(0, out.size, _BLOCK):
                self._fold_block(out, parts, slice(start, start + _BLOCK), ranks)

    def _fold_block(
        self, out: NDArray[Any], parts: Sequence[NDArray[Any]], block: slice, ranks: int
    ) -> None:
        into = out[block]
        total, part = self._total[: into.size], self._part[: into.size]
        self._widen(parts[0][block], total)
        for other in parts[1:]:
            self._widen(other[block], part)
            self._ufunc(total, part, out=total)
        if ranks:
            np.divide(total, total.dtype.type(ranks), out=total)
        self._narrow(total, part, into)


def _widen(part: NDArray[Any], wide: NDArray[Any]) -> None:
    np.copyto(wide, part)


def _round(total: NDArray[Any], _spare: NDArray[Any], into: NDArray[Any]) -> None:
    np.copyto(into, total, casting="same_kind")
