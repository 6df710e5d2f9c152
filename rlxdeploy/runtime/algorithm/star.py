"""all_reduce where the workers have links to rank 0 alone.

Segment by segment the workers send theirs to rank 0, which folds them in ascending order and
sends the result back: every element is reduced at one rank, so all end with the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from rlxdeploy.runtime.algorithm.fold import ReduceKind, finish, fold
from rlxdeploy.runtime.algorithm.moves import (
    Collect,
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

# Rank 0 holds one segment of every worker at a time.
_SEGMENT = 1 << 19


def star_all_reduce(
    member: Member,
    data: NDArray[Any],
    kind: ReduceKind,
    scratch: Scratch,
    wide: Optional[str] = None,
) -> Moves:
    """Reduce *data* over all ranks; the vectors travel to rank 0 as dtype *wide*, if given."""
    step = _root if member.rank == 0 else _worker
    for start in range(0, max(1, data.size), _SEGMENT):
        yield from step(member, data[start : start + _SEGMENT], kind, scratch, wide)


def _worker(
    _member: Member, data: NDArray[Any], _kind: ReduceKind, _scratch: Scratch, wide: Optional[str]
) -> Moves:
    sent = data if wide is None else data.astype(wide)
    yield Send(0, Tag.ALL_REDUCE, as_bytes(sent))
    yield Receive(0, Tag.ALL_REDUCE, as_bytes(data))


def _root(
    member: Member, data: NDArray[Any], kind: ReduceKind, scratch: Scratch, wide: Optional[str]
) -> Moves:
    total = data if wide is None else data.astype(wide)
    memory = scratch.take(total.size * (member.world - 1), total.dtype)
    theirs = memory.reshape(member.world - 1, total.size)
    yield Collect(
        tuple(Receive(rank, Tag.ALL_REDUCE, as_bytes(theirs[rank - 1])) for rank in member.others)
    )
    for vector in theirs:
        fold(kind, total, vector)
    finish(kind, total, member.world)
    if total is not data:
        data[...] = total
    for rank in member.others:
        yield Send(rank, Tag.ALL_REDUCE, as_bytes(data))
