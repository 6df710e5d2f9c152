"""bfloat16, which numpy does not have: the upper half of a float32, held in a uint16."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_QUIET = np.uint32(0x40)
_HALF = np.uint32(0x7FFF)
_BITS = np.uint32(16)
_ODD = np.uint32(1)


def widen(halves: NDArray[Any]) -> NDArray[np.float32]:
    """Return bfloat16 elements, held in uint16, as float32."""
    wide = np.empty(halves.shape, np.float32)
    widen_into(halves, wide)
    return wide


def narrow(wide: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return float32 elements as bfloat16: to nearest, ties to even; a NaN keeps its upper bits."""
    halves = np.empty(wide.shape, np.uint16)
    narrow_into(wide.copy(), np.empty_like(wide), halves)
    return halves


def widen_into(halves: NDArray[Any], wide: NDArray[Any]) -> None:
    """Do as `widen`, into float32 memory that is there."""
    bits = wide.view(np.uint32)
    np.copyto(bits, halves)
    np.left_shift(bits, _BITS, out=bits)


def narrow_into(wide: NDArray[Any], spare: NDArray[Any], halves: NDArray[Any]) -> None:
    """Do as `narrow`, into *halves*; what is in *wide* and *spare*, float32 both, is lost.

    Half of the last place less one is added, and one more where the last bit kept is odd.  That
    would turn a NaN into an infinity or a zero, so it keeps its upper bits and becomes a quiet one.
    """
    bits, odd = wide.view(np.uint32), spare.view(np.uint32)
    nans = np.isnan(wide)
    np.right_shift(bits, _BITS, out=odd)
    quiet = odd[nans] | _QUIET if nans.any() else None
    np.bitwise_and(odd, _ODD, out=odd)
    np.add(odd, _HALF, out=odd)
    np.add(bits, odd, out=bits)
    np.right_shift(bits, _BITS, out=bits)
    np.copyto(halves, bits, casting="same_kind")
    if quiet is not None:
        halves[nans] = quiet
