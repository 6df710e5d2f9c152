"""bfloat16, which numpy does not have: the upper half of a float32, held in a uint16."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_QUIET = np.uint32(0x40)
_HALF = np.uint32(0x7FFF)
_BITS = np.uint32(16)


def widen(halves: NDArray[Any]) -> NDArray[np.float32]:
    """Return bfloat16 elements, held in uint16, as float32."""
    bits = halves.astype(np.uint32)
    bits <<= _BITS
    return bits.view(np.float32)


def narrow(wide: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return float32 elements as bfloat16: to nearest, ties to even; a NaN keeps its upper bits."""
    bits = wide.view(np.uint32)
    upper = bits >> _BITS
    rounded = (bits + (_HALF + (upper & np.uint32(1)))) >> _BITS
    halves = np.where(np.isnan(wide), upper | _QUIET, rounded)
    return halves.astype(np.uint16)
