"""Reductions where the workers have links to rank 0 alone.

Segment by segment the workers send theirs to rank 0, which folds them in ascending order and
sends the result back: every element is reduced at one rank, so all end with the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Optional

from rlxdeploy.runtime.algorithm.moves import (
    Collect,
    Member,
    Moves,
    Receive,
    Scratch,
    Send,
    as_bytes,
)
from rlxdeploy.runtime.algorithm.ring import Reduction, split
from rlxdeploy.runtime.algorithm.tags import Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Rank 0 holds one segment of every worker at a time.
_SEGMENT = 1 << 19


def all_reduce(
    member: Member,
    data: NDArray[Any],
    what: Reduction,
    scratch: Scratch,
    wide: Optional[str] = None,
) -> Moves:
    """Reduce *data* over all ranks; the vectors travel to rank 0 as dtype *wide*, if given."""
    for segment in _segments(data):
        total = segment if wide is None else segment.astype(wide)
        yield from _fold_at_root(member, total, what, scratch)
        if member.rank:
            yield Receive(0, Tag.ALL_REDUCE, as_bytes(segment))
            continue
        if total is not segment:
            segment[...] = total
        for rank in member.others:
            yield Send(rank, Tag.ALL_REDUCE, as_bytes(segment))


def reduce_scatter(
    member: Member, data: NDArray[Any], out: NDArray[Any], what: Reduction, scratch: Scratch
) -> Moves:
    """Leave chunk *rank* of the reduced *data* in *out*; *data* stays as it is."""
    total = data if member.rank else data.copy()
    for segment in _segments(total):
        yield from _fold_at_root(member, segment, what, scratch)
    if member.rank:
        yield Receive(0, Tag.ALL_REDUCE, as_bytes(out))
        return
    parts = split(data.size, member.world)
    for rank in member.others:
        yield Send(rank, Tag.ALL_REDUCE, as_bytes(total[parts[rank]]))
    out[...] = total[parts[0]]


def _segments(data: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for start in range(0, max(1, data.size), _SEGMENT):
        yield data[start : start + _SEGMENT]


def _fold_at_root(member: Member, data: NDArray[Any], what: Reduction, scratch: Scratch) -> Moves:
    """Leave the result in rank 0's *data*."""
    if member.rank:
        yield Send(0, Tag.ALL_REDUCE, as_bytes(data))
        return
    memory = scratch.take(data.size * (member.world - 1), data.dtype)
    theirs = memory.reshape(member.world - 1, data.size)
    yield Collect(
        tuple(Receive(rank, Tag.ALL_REDUCE, as_bytes(theirs[rank - 1])) for rank in member.others)
    )
    for vector in theirs:
        what.how.fold(what.kind, data, vector)
    what.how.finish(what.kind, data, member.world)
