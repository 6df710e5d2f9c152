"""Access to the other ranks' heaps, which all have the same size: one rank acts, none waits.

A rank serves the others whenever it is in a call of its group, `watch` among them, not while it
computes.  What was put is there for whoever then gets a message of the same sender, or its answer
to a get, from the rank that was put to.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from rlxdeploy.runtime.algorithm.moves import as_bytes
from rlxdeploy.runtime.arrays import flatten
from rlxdeploy.runtime.membership import Membership

if TYPE_CHECKING:
    from numpy.typing import NDArray


class OneSided(Membership):
    """A rank that can put and get."""

    def put(
        self,
        to: int,
        offset: int,
        data: Union[bytes, bytearray, memoryview, NDArray[Any]],
        timeout: Optional[float] = None,
    ) -> None:
        """Store *data* at byte *offset* of rank *to*'s heap; returns once its memory may change."""
        call = self._begin(f"put to rank {to}", timeout, to)
        whole = as_bytes(flatten(data)) if isinstance(data, np.ndarray) else memoryview(data)
        at = index(offset)
        self._guard(call, lambda: self._wire.put(to, at, whole.cast("B"), call))

    def get(self, source: int, offset: int, length: int, timeout: Optional[float] = None) -> bytes:
        """Return *length* bytes at byte *offset* of rank *source*'s heap."""
        call = self._begin(f"get from rank {source}", timeout, source)
        if length < 0:
            raise ValueError(f"{call.op}: {length} bytes")
        into, at = memoryview(bytearray(length)), index(offset)
        self._guard(call, lambda: self._wire.get(source, at, into, call))
        return bytes(into)
