"""What the native wire and the schedules speak of: operations, reductions and element types.

The numbers go over the wire, so none may ever change its meaning.
"""

from __future__ import annotations

from enum import IntEnum


class Op(IntEnum):
    """What a message belongs to; from CONTROL on it belongs to no collective."""

    BARRIER = 1
    BROADCAST = 2
    ALL_REDUCE = 3
    REDUCE = 4
    ALL_GATHER = 5
    REDUCE_SCATTER = 6
    ALL_TO_ALL = 7
    ALL_TO_ALL_V = 8
    PPERMUTE = 9
    AVERAGE = 10
    SEND = 64
    PUT = 65
    GET = 66
    GOT = 67
    ABORT = 128
    GOODBYE = 129
    # While the group forms, between rank 0 and the others.
    WAIT = 130
    ROSTER = 131
    READY = 132
    GO = 133


class Kind(IntEnum):
    """How elements are reduced; NONE where nothing is."""

    NONE = 0
    SUM = 1
    MEAN = 2
    MAX = 3
    MIN = 4


class Dtype(IntEnum):
    """What the elements are; BYTES where nobody counts in elements."""

    BYTES = 0
    FLOAT16 = 1
    BFLOAT16 = 2
    FLOAT32 = 3
    FLOAT64 = 4
    INT8 = 5
    INT16 = 6
    INT32 = 7
    INT64 = 8
    UINT8 = 9
    UINT16 = 10
    UINT32 = 11
    UINT64 = 12

    @property
    def bytes(self) -> int:
        """The size of one element."""
        return _SIZES[self]


# In the root of an all_reduce: sums of float32 are rounded once, at the end.
EXACT = 1

_SIZES = (1, 2, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8)
