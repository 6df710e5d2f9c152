"""Reductions around a ring: every rank reduces one chunk, then passes it on.

Chunks are a near-equal split, the first ones an element longer; empty ones are sent too.  In the
reduce-scatter phase of all_reduce chunk (rank - s) goes to the next rank at step s, so rank r ends
up holding chunk r + 1; in the gather phase the finished chunks go round.  reduce_scatter is the
first phase alone, begun one chunk earlier, so that rank r ends up holding chunk r.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, NamedTuple

import numpy as np

from rlxdeploy.runtime.algorithm.arithmetic import WIDE, Arithmetic
from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.moves import (
    Flush,
    Member,
    Moves,
    Receive,
    Scratch,
    Send,
    as_bytes,
)
from rlxdeploy.runtime.algorithm.tags import Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Reduction(NamedTuple):
    """Which fold of which elements."""

    kind: ReduceKind
    how: Arithmetic


def split(length: int, parts: int) -> List[slice]:
    """Cut *length* elements into near-equal parts, longer ones first."""
    least, more = divmod(length, parts)
    starts = [part * least + min(part, more) for part in range(parts + 1)]
    return [slice(starts[part], starts[part + 1]) for part in range(parts)]


def all_reduce(member: Member, data: NDArray[Any], what: Reduction, scratch: Scratch) -> Moves:
    """Reduce *data* over all ranks, in its own precision."""
    rank, world = member.rank, member.world
    chunks = [data[part] for part in split(data.size, world)]
    yield from _fold_around(rank, rank, chunks, what, scratch)
    if what.how.by_owner:
        what.how.finish(what.kind, chunks[(rank + 1) % world], world)
    yield from _gather(rank, chunks)
    if not what.how.by_owner:
        yield Flush()
        what.how.finish(what.kind, data, world)


def all_reduce_exact(
    member: Member, data: NDArray[Any], kind: ReduceKind, scratch: Scratch
) -> Moves:
    """Reduce float32 *data* with float64 partial results on the wire (deterministic mode)."""
    rank, world = member.rank, member.world
    parts = split(data.size, world)
    wide = data.astype(np.float64)
    chunks = [wide[part] for part in parts]
    yield from _fold_around(rank, rank, chunks, Reduction(kind, WIDE), scratch)
    own = parts[(rank + 1) % world]
    WIDE.finish(kind, wide[own], world)
    data[own] = wide[own]
    yield from _gather(rank, [data[part] for part in parts])


def reduce_scatter(
    member: Member, data: NDArray[Any], out: NDArray[Any], what: Reduction, scratch: Scratch
) -> Moves:
    """Leave chunk *rank* of the reduced *data* in *out*; *data* stays as it is."""
    rank, held = member.rank, data.copy()
    chunks = [held[part] for part in split(data.size, member.world)]
    yield from _fold_around(rank, rank - 1, chunks, what, scratch)
    out[...] = chunks[rank]
    what.how.finish(what.kind, out, member.world)


def _fold_around(
    rank: int, first: int, chunks: List[NDArray[Any]], what: Reduction, scratch: Scratch
) -> Moves:
    """Send chunk *first* on, and fold what comes into the one before, once for every other rank."""
    world = len(chunks)
    for step in range(world - 1):
        mine = chunks[(first - step - 1) % world]
        arrived = scratch.take(mine.size, mine.dtype)
        yield Send((rank + 1) % world, Tag.ALL_REDUCE, as_bytes(chunks[(first - step) % world]))
        yield Receive((rank - 1) % world, Tag.ALL_REDUCE, as_bytes(arrived))
        what.how.fold(what.kind, mine, arrived)


def _gather(rank: int, chunks: List[NDArray[Any]]) -> Moves:
    world = len(chunks)
    for step in range(world - 1):
        mine = chunks[(rank - step) % world]
        yield Send((rank + 1) % world, Tag.ALL_REDUCE, as_bytes(chunks[(rank + 1 - step) % world]))
        yield Receive((rank - 1) % world, Tag.ALL_REDUCE, as_bytes(mine))
