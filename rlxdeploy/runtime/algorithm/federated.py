"""federated_average: the mean of those who are there in time, taken at rank 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List

import numpy as np

from rlxdeploy.runtime.algorithm.arithmetic import SCALED, TYPED
from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.moves import (
    Entrust,
    Flush,
    Gather,
    Member,
    Moves,
    Send,
    as_bytes,
)
from rlxdeploy.runtime.algorithm.tags import Tag
from rlxdeploy.runtime.errors import LengthMismatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OP = "federated_average"


def federated_average(
    member: Member, data: NDArray[Any], dtype: str, seconds: float, present: List[int]
) -> Moves:
    """Average *data* over those whose vector reaches rank 0 within *seconds*, in place.

    *dtype* is a key of SCALED.  At rank 0 *present* becomes the ranks that took part.
    """
    if member.rank:
        yield from _contribute(data)
        return
    came: Dict[int, memoryview] = {}
    yield Gather(member.others, Tag.ALL_REDUCE, seconds, came)
    present.append(0)
    for rank in sorted(came):
        if len(came[rank]) % data.itemsize:
            raise LengthMismatch(_OP, rank, data.nbytes, len(came[rank]))
        if len(came[rank]) == data.nbytes:
            vector = _as_array(came[rank], data)
            TYPED[dtype].fold(ReduceKind.SUM, data, vector)
            present.append(rank)
    SCALED[dtype](data, len(present))
    yield from _answer(member, data, present)


def _contribute(data: NDArray[Any]) -> Moves:
    """Send a worker's vector; an answer of another length leaves it as it is."""
    came: Dict[int, memoryview] = {}
    yield Send(0, Tag.ALL_REDUCE, as_bytes(data))
    yield Gather((0,), Tag.ALL_REDUCE, None, came)
    # The answer may be there before rank 0 has taken what it came without.
    yield Flush()
    if len(came[0]) == data.nbytes:
        as_bytes(data)[:] = came[0]


def _answer(member: Member, data: NDArray[Any], present: List[int]) -> Moves:
    """Send the mean to all; whoever was not there may not read for long, and is not waited for."""
    kept = as_bytes(data.copy()) if len(present) < member.world else as_bytes(data)
    for rank in member.others:
        if rank in present:
            yield Send(rank, Tag.ALL_REDUCE, as_bytes(data))
        else:
            yield Entrust(rank, Tag.ALL_REDUCE, kept)


def _as_array(message: memoryview, like: NDArray[Any]) -> NDArray[Any]:
    vector: NDArray[Any] = np.frombuffer(message, like.dtype)
    return vector
