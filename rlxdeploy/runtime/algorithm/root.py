"""reduce: the root folds every other rank's vector into its own, in ascending order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlxdeploy.runtime.algorithm.moves import Member, Moves, Receive, Scratch, Send, as_bytes
from rlxdeploy.runtime.algorithm.ring import Reduction
from rlxdeploy.runtime.algorithm.tags import Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray


def reduce(
    member: Member, data: NDArray[Any], root: int, what: Reduction, scratch: Scratch
) -> Moves:
    """Reduce *data* over all ranks at *root*, in place; the others' stays as it is.

    Without links of its own the root has rank 0 fold, in the order it would itself.
    """
    folder = 0 if member.hub else root
    if member.rank == folder:
        yield from _fold(member, data, root, what, scratch)
    else:
        yield Send(folder, Tag.REDUCE, as_bytes(data))
        if member.rank == root:
            yield Receive(folder, Tag.REDUCE, as_bytes(data))


def _fold(
    member: Member, data: NDArray[Any], root: int, what: Reduction, scratch: Scratch
) -> Moves:
    total = data
    if root != member.rank:
        total = data.copy()
        yield Receive(root, Tag.REDUCE, as_bytes(total))
    for rank in range(member.world):
        if rank == root:
            continue
        part = data
        if rank != member.rank:
            part = scratch.take(data.size, data.dtype)
            yield Receive(rank, Tag.REDUCE, as_bytes(part))
        what.how.fold(what.kind, total, part)
    what.how.finish(what.kind, total, member.world)
    if root != member.rank:
        yield Send(root, Tag.REDUCE, as_bytes(total))
