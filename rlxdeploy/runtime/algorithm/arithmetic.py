"""How the elements of each dtype of the rlx wire are reduced, bit for bit as rlx-driver does.

In all_reduce float32 is folded as it is, and the owner of a chunk divides it for a mean.  In
all_reduce_typed the fold is rounded back to the dtype at every hop: 16-bit floats after a float32
operation, 8-bit integers clamped to their range.  Its mean is taken by every rank at the end:
times 1/n in float32, for float64 divided by n, for integers rounded half away from zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, NamedTuple

import numpy as np

from rlxdeploy.runtime.algorithm import bfloat16
from rlxdeploy.runtime.algorithm.fold import ReduceKind, fold

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Copies in a wider dtype stay in the cache.
_BLOCK = 1 << 14


class Arithmetic(NamedTuple):
    """Fold the second array into the first; turn the fold of so many ranks into their mean.

    *by_owner* says who takes the mean in a ring: a chunk's owner, else every rank at the end.
    """

    fold: Callable[[ReduceKind, NDArray[Any], NDArray[Any]], None]
    mean: Callable[[NDArray[Any], int], None]
    by_owner: bool = False

    def finish(self, kind: ReduceKind, total: NDArray[Any], world: int) -> None:
        """Turn the fold of all ranks into the result, in place."""
        if kind is ReduceKind.MEAN:
            self.mean(total, world)


def _divide(total: NDArray[Any], count: int) -> None:
    np.divide(total, total.dtype.type(count), out=total)


def _inverse(count: int) -> np.float32:
    return np.float32(1) / np.float32(count)


def _scale(total: NDArray[Any], count: int) -> None:
    np.multiply(total, _inverse(count), out=total)


def _scale_float16(total: NDArray[Any], count: int) -> None:
    for start in range(0, total.size, _BLOCK):
        block = total[start : start + _BLOCK]
        block[...] = block.astype(np.float32) * _inverse(count)


def _fold_bfloat16(kind: ReduceKind, into: NDArray[Any], other: NDArray[Any]) -> None:
    for start in range(0, into.size, _BLOCK):
        block = into[start : start + _BLOCK]
        wide = bfloat16.widen(block)
        fold(kind, wide, bfloat16.widen(other[start : start + _BLOCK]))
        block[...] = bfloat16.narrow(wide)


def _scale_bfloat16(total: NDArray[Any], count: int) -> None:
    for start in range(0, total.size, _BLOCK):
        block = total[start : start + _BLOCK]
        block[...] = bfloat16.narrow(bfloat16.widen(block) * _inverse(count))


def _fold_clamped(kind: ReduceKind, into: NDArray[Any], other: NDArray[Any]) -> None:
    if kind in {ReduceKind.MAX, ReduceKind.MIN}:
        fold(kind, into, other)
        return
    range_ = np.iinfo(into.dtype)
    for start in range(0, into.size, _BLOCK):
        block = into[start : start + _BLOCK]
        wide = np.add(block, other[start : start + _BLOCK], dtype=np.int16)
        block[...] = np.clip(wide, range_.min, range_.max)


def _round_mean(total: NDArray[Any], count: int) -> None:
    """Divide, rounding half away from zero; the result fits, as it is no bigger than the sum."""
    for start in range(0, total.size, _BLOCK):
        block = total[start : start + _BLOCK]
        wide = block.astype(np.int32)
        block[...] = np.sign(wide) * ((2 * np.abs(wide) + count) // (2 * count))


def _scale_float64(total: NDArray[Any], count: int) -> None:
    np.multiply(total, 1 / count, out=total)


FLOAT32 = Arithmetic(fold, _divide, by_owner=True)
# What deterministic mode sums in.
WIDE = Arithmetic(fold, _divide, by_owner=True)
TYPED: Dict[str, Arithmetic] = {
    "float16": Arithmetic(fold, _scale_float16),
    "bfloat16": Arithmetic(_fold_bfloat16, _scale_bfloat16),
    "float32": Arithmetic(fold, _scale),
    "float64": Arithmetic(fold, _divide),
    "int8": Arithmetic(_fold_clamped, _round_mean),
    "uint8": Arithmetic(_fold_clamped, _round_mean),
}
# How federated_average turns a sum into a mean.
SCALED: Dict[str, Callable[[NDArray[Any], int], None]] = {
    "float16": _scale_float16,
    "bfloat16": _scale_bfloat16,
    "float32": _scale,
    "float64": _scale_float64,
}
