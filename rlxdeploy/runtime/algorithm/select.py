"""Which algorithm a member of a group uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.moves import Member, Moves, Scratch
from rlxdeploy.runtime.algorithm.ring import ring_all_reduce, ring_all_reduce_exact
from rlxdeploy.runtime.algorithm.star import star_all_reduce

if TYPE_CHECKING:
    from numpy.typing import NDArray


def all_reduce(
    member: Member, data: NDArray[Any], kind: ReduceKind, scratch: Scratch, *, exact: bool
) -> Moves:
    """Reduce float32 or float64 *data* over all ranks; *exact* sums float32 in float64."""
    exact = exact and data.dtype == np.float32
    if member.world == 1:
        return iter(())
    if member.hub:
        return star_all_reduce(member, data, kind, scratch, "<f8" if exact else None)
    ring = ring_all_reduce_exact if exact else ring_all_reduce
    return ring(member, data, kind, scratch)
