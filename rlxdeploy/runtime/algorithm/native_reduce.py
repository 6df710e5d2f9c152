"""all_reduce, reduce and reduce_scatter in a mesh, as schedules.

Every element is reduced at one rank, or by every rank from the same operands in the same order,
so that all ranks end with the same bits.  *narrow* elements (16-bit floats) must be rounded only
once: they never travel as partial results.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Iterator, List, Optional, Tuple

from rlxdeploy.runtime.algorithm.native_steps import (
    CHUNK,
    INPUT,
    RESULT,
    Copy,
    Range,
    Receive,
    Reduce,
    Schedule,
    Send,
    Shape,
    chunks,
    split,
)

# Up to here one message each way beats cutting the work in halves: latency, not copying, counts.
WHOLE = 256 << 10
# Chunks of two ranks that send and receive at once: both directions share the cache.
_PAIR_CHUNK = 256 << 10
# Without shared cores and without a power of two, the root of a star is the slower the more comes.
_TINY = 16 << 10
# An array this long no longer stays in the cache between halving and doubling: go window by window.
_WINDOWED = 16 << 20
_WINDOW = 2 << 20
# Chunks of many ranks at once get smaller, but not so small that system calls dominate.
_LEAST_CHUNK = 64 << 10


def all_reduce(shape: Shape, size: int, unit: int, *, narrow: bool) -> Schedule:
    """Reduce RESULT[0:size], elements of *unit* bytes, over all ranks of a mesh."""
    world = shape.world
    paired = world & (world - 1) == 0 and not (narrow and world > 2)  # noqa: PLR2004 - a pair
    if world == 2:  # noqa: PLR2004 - a pair
        return _exchange(shape, size) if size <= WHOLE else _interleaved(shape, size, unit)
    if size <= (WHOLE if shape.crowded else _TINY) and not (paired and not shape.crowded):
        return star_reduce(shape, size)
    if not paired:
        return _pairwise(shape, size, unit)
    if size <= WHOLE:
        return _recursive_doubling(shape, size)
    windows = chunks(0, size, _WINDOW if size > _WINDOWED else size)
    return [step for window in windows for step in _halving_doubling(shape, window, unit)]


def reduce(shape: Shape, size: int, root: int) -> Schedule:
    """Reduce RESULT[0:size] of all ranks at *root* of a mesh; the others' stay as they are."""
    if shape.rank != root:
        return [Send(root, RESULT, *part) for part in chunks(0, size)]
    return [Reduce(shape.others, RESULT, *part) for part in chunks(0, size)]


def reduce_scatter(shape: Shape, size: int, unit: int) -> Schedule:
    """Reduce INPUT[0:size]; RESULT is this rank's share of the near-equal split."""
    parts = split(0, size, shape.world, unit)
    start, stop = parts[shape.rank]
    steps: Schedule = [Copy(INPUT, start, stop, RESULT, 0)]
    for theirs, mine in _columns(parts, shape):
        steps += [Send(to, INPUT, *part) for to, part in zip(shape.others, theirs) if part]
        if mine:
            steps.append(Reduce(shape.others, RESULT, mine[0] - start, mine[1] - start))
    return steps


def star_reduce(shape: Shape, size: int) -> Schedule:
    """Reduce RESULT[0:size] at rank 0, which sends the result to all."""
    if shape.rank:
        sent: Schedule = [Send(0, RESULT, *part) for part in chunks(0, size)]
        return sent + [Receive(0, RESULT, *part) for part in chunks(0, size)]
    steps: Schedule = []
    for part in chunks(0, size):
        steps.append(Reduce(shape.others, RESULT, *part))
        steps += [Send(to, RESULT, *part) for to in shape.others]
    return steps


def _exchange(shape: Shape, size: int) -> Schedule:
    peer = 1 - shape.rank
    return [Send(peer, RESULT, 0, size), Reduce((peer,), RESULT, 0, size, fence=True)]


def _interleaved(shape: Shape, size: int, unit: int) -> Schedule:
    """Reduce one half each and give it back, chunk by chunk, both directions always busy."""
    peer = 1 - shape.rank
    halves = split(0, size, 2, unit)
    steps: Schedule = []
    mine = chunks(*halves[shape.rank], _PAIR_CHUNK)
    theirs = chunks(*halves[peer], _PAIR_CHUNK)
    for own, other in zip_longest(mine, theirs):
        if other:
            steps.append(Send(peer, RESULT, *other))
        if own:
            steps += [Reduce((peer,), RESULT, *own), Send(peer, RESULT, *own)]
        if other:
            steps.append(Receive(peer, RESULT, *other))
    return steps


def _recursive_doubling(shape: Shape, size: int) -> Schedule:
    steps: Schedule = []
    distance = 1
    while distance < shape.world:
        peer, last = shape.rank ^ distance, distance * 2 == shape.world
        steps.append(Send(peer, RESULT, 0, size))
        steps.append(Reduce((peer,), RESULT, 0, size, last=last, fence=True))
        distance *= 2
    return steps


def _halving_doubling(shape: Shape, window: Range, unit: int) -> Schedule:
    steps: Schedule = []
    back: List[Schedule] = []
    mine = window
    distance = shape.world // 2
    while distance:
        peer, upper = shape.rank ^ distance, bool(shape.rank & distance)
        halves = split(*mine, 2, unit)
        theirs, mine = halves[not upper], halves[upper]
        steps += [Send(peer, RESULT, *part) for part in chunks(*theirs)]
        steps += [Reduce((peer,), RESULT, *part, last=distance == 1) for part in chunks(*mine)]
        gather: Schedule = [Send(peer, RESULT, *part) for part in chunks(*mine)]
        back.append(gather + [Receive(peer, RESULT, *part) for part in chunks(*theirs)])
        distance //= 2
    return steps + [step for gather in reversed(back) for step in gather]


def _pairwise(shape: Shape, size: int, unit: int) -> Schedule:
    """Send every rank its part, reduce the own one and send it to all, chunk by chunk."""
    parts = split(0, size, shape.world, unit)
    steps: Schedule = []
    for theirs, mine in _columns(parts, shape):
        others = [(rank, part) for rank, part in zip(shape.others, theirs) if part]
        steps += [Send(to, RESULT, *part) for to, part in others]
        if mine:
            steps.append(Reduce(shape.others, RESULT, *mine))
            steps += [Send(to, RESULT, *mine) for to in shape.others]
        steps += [Receive(source, RESULT, *part) for source, part in others]
    return steps


_Column = Tuple[List[Optional[Range]], Optional[Range]]


def _columns(parts: List[Range], shape: Shape) -> Iterator[_Column]:
    """Yield the chunks of all parts side by side: those of the others in their order, the own."""
    # The owner of a part holds one chunk of every other rank at a time.
    size = max(_LEAST_CHUNK, CHUNK // max(1, (shape.world - 1) // 8) // 8 * 8)
    cut = [chunks(*part, size) for part in parts]
    for column in zip_longest(*cut):
        yield [column[rank] for rank in shape.others], column[shape.rank]
