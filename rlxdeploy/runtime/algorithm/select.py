"""Which algorithm a member of a group uses on the rlx wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Sequence

import numpy as np

from rlxdeploy.runtime.algorithm import pairwise, relay, ring, root, star
from rlxdeploy.runtime.algorithm.arithmetic import FLOAT32, TYPED, WIDE
from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.moves import Member, Moves, Scratch
from rlxdeploy.runtime.algorithm.ring import Reduction

if TYPE_CHECKING:
    from numpy.typing import NDArray


def reduction(kind: ReduceKind, dtype: str) -> Reduction:
    """Return how all_reduce reduces elements of *dtype*, a key of TYPED."""
    return Reduction(kind, FLOAT32 if dtype == "float32" else TYPED[dtype])


def typed_reduction(kind: ReduceKind, dtype: str) -> Reduction:
    """Return how all_reduce_typed reduces elements of *dtype*, a key of TYPED."""
    return Reduction(kind, TYPED[dtype])


def all_reduce(
    member: Member, data: NDArray[Any], what: Reduction, scratch: Scratch, *, exact: bool = False
) -> Moves:
    """Reduce *data* over all ranks; *exact* sums float32 in float64."""
    exact = exact and data.dtype == np.float32
    if member.world == 1:
        return iter(())
    if member.hub:
        if exact:
            return star.all_reduce(member, data, Reduction(what.kind, WIDE), scratch, "<f8")
        return star.all_reduce(member, data, what, scratch)
    if exact:
        return ring.all_reduce_exact(member, data, what.kind, scratch)
    return ring.all_reduce(member, data, what, scratch)


def reduce(member: Member, data: NDArray[Any], at: int, what: Reduction, scratch: Scratch) -> Moves:
    """Reduce *data* over all ranks at rank *at*."""
    return root.reduce(member, data, at, what, scratch)


def reduce_scatter(
    member: Member, data: NDArray[Any], out: NDArray[Any], what: Reduction, scratch: Scratch
) -> Moves:
    """Leave this rank's chunk of the reduced *data* in *out*."""
    scatter = star.reduce_scatter if member.hub else ring.reduce_scatter
    return scatter(member, data, out, what, scratch)


def all_to_all(member: Member, data: NDArray[Any], out: NDArray[Any]) -> Moves:
    """Send the i-th equal part of *data* to rank i; *out* holds what came, by rank."""
    exchange = relay.all_to_all if member.hub else pairwise.all_to_all
    return exchange(member, data, out)


def all_to_all_v(
    member: Member, parts: Sequence[NDArray[Any]], got: List[NDArray[Any]], most: int
) -> Moves:
    """Send parts[i] to rank i; *got* becomes what came; *most* elements go into a message."""
    exchange = relay.all_to_all_v if member.hub else pairwise.all_to_all_v
    return exchange(member, parts, got, most)


def ppermute(
    member: Member, data: NDArray[Any], out: NDArray[Any], pairs: Sequence[Sequence[int]]
) -> Moves:
    """Send *data* along this rank's (source, destination); *out* becomes what comes along one."""
    exchange = relay.ppermute if member.hub else pairwise.ppermute
    return exchange(member, data, out, pairs)
