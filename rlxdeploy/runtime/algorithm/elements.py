"""Which dtype of the wire an array's elements have."""

from __future__ import annotations

from typing import Any, Dict, Optional

import numpy as np

from rlxdeploy.runtime.vocabulary import Dtype

BFLOAT16 = "bf16"

_BY_NAME: Dict[str, Dtype] = {
    dtype.name.lower(): dtype for dtype in Dtype if dtype not in {Dtype.BYTES, Dtype.BFLOAT16}
}
# What ml_dtypes calls it, where that is installed.
_BY_NAME["bfloat16"] = Dtype.BFLOAT16
REDUCIBLE = ", ".join(sorted(_BY_NAME))


def element_type(dtype: np.dtype[Any], written: Optional[str]) -> Dtype:
    """Return the dtype of elements that are to be reduced; *written* says `bf16` for a uint16.

    Raises TypeError for any other dtype.
    """
    found = _BY_NAME.get(dtype.name)
    if written is not None and (written != BFLOAT16 or dtype.name not in {"uint16", "bfloat16"}):
        raise TypeError(
            f"dtype={written!r} does not fit an array of {dtype}; only dtype='bf16' for uint16"
        )
    if found is None:
        raise TypeError(f"cannot reduce {dtype}; use one of {REDUCIBLE}")
    return found if written is None else Dtype.BFLOAT16


def wire_type(dtype: np.dtype[Any]) -> Dtype:
    """Return what the header calls elements that are only moved."""
    return _BY_NAME.get(dtype.name, Dtype.BYTES)


def folded_type(dtype: Dtype) -> np.dtype[Any]:
    """Return the numpy dtype that elements are folded as: bfloat16 as uint16."""
    return np.dtype("uint16" if dtype == Dtype.BFLOAT16 else dtype.name.lower())
