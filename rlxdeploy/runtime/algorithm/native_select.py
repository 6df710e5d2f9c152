"""Which schedule a rank follows for a call of the native wire."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Tuple

from rlxdeploy.runtime.algorithm import native_reduce, native_spread, native_star
from rlxdeploy.runtime.algorithm.native_steps import (
    INPUT,
    KEPT,
    RESULT,
    Copy,
    Schedule,
    Shape,
)
from rlxdeploy.runtime.vocabulary import EXACT, Dtype, Op

# Where ranks share cores, two messages through rank 0 wake fewer processes than one to each.
_TINY = 4 << 10
_NARROW = (Dtype.FLOAT16, Dtype.BFLOAT16)
# A program makes a few different calls, over and over.
_PLANS = 256
# The size of the biggest elements.
_ELEMENT = 8


class Plan(NamedTuple):
    """A schedule and how many bytes of KEPT it uses: at least an element where it names it."""

    steps: Schedule
    kept: int


@lru_cache(_PLANS)
def plan(shape: Shape, op: Op, dtype: Dtype, size: int, root: int = 0) -> Plan:
    """Return what *shape*'s rank does in *op* on *size* bytes: the call's total in the header.

    *root* is as in the header; *op* is one of BARRIER, BROADCAST, ALL_REDUCE, REDUCE, ALL_GATHER,
    REDUCE_SCATTER.
    """
    if shape.world == 1:
        alone: Schedule = [Copy(INPUT, 0, size, RESULT, 0)]
        return Plan(alone if op in {Op.ALL_GATHER, Op.REDUCE_SCATTER} else [], 0)
    return _with_kept(_choose(shape, op, dtype, size, root))


@lru_cache(_PLANS)
def plan_routes(shape: Shape, op: Op, size: int, routes: Tuple[Tuple[int, ...], ...]) -> Plan:
    """Return what a rank does in all_to_all and all_to_all_v, or in ppermute.

    *routes* are the bytes from rank to rank, or the pairs of a permutation of *size* bytes.
    """
    if op == Op.PPERMUTE:
        pairs = [(source, to) for source, to in routes]
        permute = native_star.ppermute if shape.star else native_spread.ppermute
        return _with_kept(permute(shape, size, pairs))
    exchange = native_star.all_to_all if shape.star else native_spread.all_to_all
    return _with_kept(exchange(shape, routes))


def _choose(shape: Shape, op: Op, dtype: Dtype, size: int, root: int) -> Schedule:
    tiny = op == Op.BARRIER or (op == Op.ALL_GATHER and size * shape.world <= _TINY)
    through_root = shape.star or (shape.crowded and tiny)
    return (_in_star if through_root else _in_mesh)(shape, op, dtype, size, root)


def _in_star(shape: Shape, op: Op, dtype: Dtype, size: int, root: int) -> Schedule:
    if op == Op.ALL_REDUCE:
        return native_reduce.star_reduce(shape, size)
    if op == Op.REDUCE:
        return native_star.reduce(shape, size, root)
    if op == Op.REDUCE_SCATTER:
        return native_star.reduce_scatter(shape, size, dtype.bytes)
    if op == Op.BROADCAST:
        return native_star.broadcast(shape, size, root)
    if op == Op.ALL_GATHER:
        return native_star.all_gather(shape, size)
    return native_star.barrier(shape)


def _in_mesh(shape: Shape, op: Op, dtype: Dtype, size: int, root: int) -> Schedule:
    if op == Op.ALL_REDUCE:
        narrow = dtype in _NARROW or root == EXACT
        return native_reduce.all_reduce(shape, size, dtype.bytes, narrow=narrow)
    if op == Op.REDUCE:
        return native_reduce.reduce(shape, size, root)
    if op == Op.REDUCE_SCATTER:
        return native_reduce.reduce_scatter(shape, size, dtype.bytes)
    if op == Op.BROADCAST:
        return native_spread.broadcast(shape, size, root)
    if op == Op.ALL_GATHER:
        return native_spread.all_gather(shape, size)
    return native_spread.barrier(shape)


def _with_kept(steps: Schedule) -> Plan:
    ends = [0]
    for step in steps:
        if step.memory == KEPT:
            end = step.at + step.stop - step.start if isinstance(step, Copy) else step.stop
            ends.append(max(_ELEMENT, end))
        elif isinstance(step, Copy) and step.source == KEPT:
            ends.append(max(_ELEMENT, step.stop))
    return Plan(steps, max(ends))
