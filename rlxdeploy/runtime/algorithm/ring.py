"""all_reduce around a ring: every rank reduces one chunk, then passes it on.

Chunks are a near-equal split, the first ones an element longer; empty ones are sent too.  In the
reduce-scatter phase chunk (rank - s) goes to the next rank at step s, so rank r ends up holding
chunk r + 1; in the gather phase the finished chunks go round.  A mean is taken by the chunk's
owner for float32, by every rank after the gather for the typed float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List

import numpy as np

from rlxdeploy.runtime.algorithm.fold import ReduceKind, finish, fold
from rlxdeploy.runtime.algorithm.moves import Member, Moves, Receive, Scratch, Send, as_bytes
from rlxdeploy.runtime.algorithm.tags import Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray


def split(length: int, parts: int) -> List[slice]:
    """Cut *length* elements into near-equal parts, longer ones first."""
    least, more = divmod(length, parts)
    starts = [part * least + min(part, more) for part in range(parts + 1)]
    return [slice(starts[part], starts[part + 1]) for part in range(parts)]


def ring_all_reduce(
    member: Member, data: NDArray[Any], kind: ReduceKind, scratch: Scratch
) -> Moves:
    """Reduce *data* over all ranks, in its own precision."""
    rank, world = member.rank, member.world
    chunks = [data[part] for part in split(data.size, world)]
    yield from _reduce_scatter(rank, chunks, kind, scratch)
    by_owner = data.dtype != np.float64
    if by_owner:
        finish(kind, chunks[(rank + 1) % world], world)
    yield from _gather(rank, chunks)
    if not by_owner:
        finish(kind, data, world)


def ring_all_reduce_exact(
    member: Member, data: NDArray[Any], kind: ReduceKind, scratch: Scratch
) -> Moves:
    """Reduce float32 *data* with float64 partial results on the wire (deterministic mode)."""
    rank, world = member.rank, member.world
    parts = split(data.size, world)
    wide = data.astype(np.float64)
    yield from _reduce_scatter(rank, [wide[part] for part in parts], kind, scratch)
    own = parts[(rank + 1) % world]
    finish(kind, wide[own], world)
    data[own] = wide[own]
    yield from _gather(rank, [data[part] for part in parts])


def _reduce_scatter(
    rank: int, chunks: List[NDArray[Any]], kind: ReduceKind, scratch: Scratch
) -> Moves:
    world = len(chunks)
    for step in range(world - 1):
        mine = chunks[(rank - step - 1) % world]
        arrived = scratch.take(mine.size, mine.dtype)
        yield Send((rank + 1) % world, Tag.ALL_REDUCE, as_bytes(chunks[(rank - step) % world]))
        yield Receive((rank - 1) % world, Tag.ALL_REDUCE, as_bytes(arrived))
        fold(kind, mine, arrived)


def _gather(rank: int, chunks: List[NDArray[Any]]) -> Moves:
    world = len(chunks)
    for step in range(world - 1):
        mine = chunks[(rank - step) % world]
        yield Send((rank + 1) % world, Tag.ALL_REDUCE, as_bytes(chunks[(rank + 1 - step) % world]))
        yield Receive((rank - 1) % world, Tag.ALL_REDUCE, as_bytes(mine))
