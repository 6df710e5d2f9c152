"""What a reduction does to two numbers."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ReduceKind(Enum):
    """How the ranks' elements become one; in MAX and MIN a NaN loses to a number."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"


_FOLD = {
    ReduceKind.SUM: np.add,
    ReduceKind.MEAN: np.add,
    ReduceKind.MAX: np.fmax,
    ReduceKind.MIN: np.fmin,
}


def fold(kind: ReduceKind, into: NDArray[Any], other: NDArray[Any]) -> None:
    """Fold *other* into *into*, element by element."""
    _FOLD[kind](into, other, out=into)
