"""From a caller's array to the row of bytes that goes on the wire, and back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def flatten(array: NDArray[Any], *, result: bool = False) -> NDArray[Any]:
    """Return *array* as one contiguous little-endian row: itself where it is that, else a copy.

    *result* says that something will be written into it.  Raises TypeError for what is no array of
    plain elements, ValueError for a read-only result.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected a numpy array, got {type(array).__name__}")
    if array.dtype.hasobject:
        raise TypeError(f"an array of {array.dtype} holds no bytes to send")
    if result and not array.flags.writeable:
        raise ValueError("the array is read-only; results are written into it")
    plain = array if type(array) is np.ndarray else _plain(array)
    if is_flat(plain):
        return plain.reshape(-1)
    return np.ascontiguousarray(plain, plain.dtype.newbyteorder("<")).reshape(-1)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return the memory of an array of another class, which may shape and count in its own way."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("a masked array would lose its mask; hand over its data, and mask")
    return array.view(np.ndarray)


def is_flat(array: NDArray[Any]) -> bool:
    """Whether the memory of *array* is that row already."""
    contiguous: bool = array.flags.c_contiguous
    return contiguous and array.dtype.isnative and sys.byteorder == "little"


def write_back(flat: NDArray[Any], array: NDArray[Any]) -> None:
    """Put the row that `flatten` gave for *array* into it, unless it is its own memory."""
    if not is_flat(array):
        array[...] = restored(flat, array.dtype).reshape(array.shape)


def restored(flat: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a row as elements of the caller's *dtype*, whatever they were worked on as."""
    return flat.view(dtype.newbyteorder("<")).astype(dtype, copy=False)
