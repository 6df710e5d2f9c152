"""barrier, broadcast, all_gather, all_to_all and ppermute in a mesh, as schedules."""

from __future__ import annotations

from itertools import zip_longest
from typing import Sequence, Tuple

from rlxdeploy.runtime.algorithm.native_steps import (
    INPUT,
    RESULT,
    Copy,
    Range,
    Receive,
    Schedule,
    Send,
    Shape,
    chunks,
    places,
)

# From here on a chain, where each rank sends once, beats a root that sends to all.
_CHAIN = 1 << 20

Counts = Sequence[Sequence[int]]


def barrier(shape: Shape) -> Schedule:
    """Let no rank go on before every rank has come."""
    steps: Schedule = []
    distance = 1
    while distance < shape.world:
        steps.append(Send((shape.rank + distance) % shape.world, RESULT, 0, 0))
        steps.append(Receive((shape.rank - distance) % shape.world, RESULT, 0, 0))
        distance *= 2
    return steps


def broadcast(shape: Shape, size: int, root: int) -> Schedule:
    """Give every rank RESULT[0:size] of *root*."""
    if size <= _CHAIN or shape.world == 2:  # noqa: PLR2004 - a pair
        if shape.rank == root:
            return [Send(to, RESULT, *part) for part in chunks(0, size) for to in shape.others]
        return [Receive(root, RESULT, *part) for part in chunks(0, size)]
    place = (shape.rank - root) % shape.world
    steps: Schedule = []
    for part in chunks(0, size):
        if place:
            steps.append(Receive((shape.rank - 1) % shape.world, RESULT, *part))
        if place < shape.world - 1:
            steps.append(Send((shape.rank + 1) % shape.world, RESULT, *part))
    return steps


def all_gather(shape: Shape, size: int) -> Schedule:
    """Fill RESULT with INPUT[0:size] of every rank, in the order of ranks."""
    own: Schedule = [Copy(INPUT, 0, size, RESULT, shape.rank * size)]
    for start, stop in chunks(0, size):
        own += [Send(to, INPUT, start, stop) for to in shape.others]
        own += [
            Receive(source, RESULT, source * size + start, source * size + stop)
            for source in reversed(shape.others)
        ]
    return own


def all_to_all(shape: Shape, counts: Counts) -> Schedule:
    """Send a part of INPUT to every rank; counts[i][j] are the bytes from rank i to rank j.

    Parts lie in INPUT by destination, in RESULT by source.
    """
    rank = shape.rank
    sent = places(counts[rank])
    got = places([row[rank] for row in counts])
    steps: Schedule = [Copy(INPUT, *sent[rank], RESULT, got[rank][0])]
    outward = [_cut(to, sent[to]) for to in shape.others]
    inward = [_cut(source, got[source]) for source in reversed(shape.others)]
    for column in zip_longest(*outward, *inward):
        sends, receives = column[: len(outward)], column[len(outward) :]
        steps += [Send(each[0], INPUT, *each[1]) for each in sends if each]
        steps += [Receive(each[0], RESULT, *each[1]) for each in receives if each]
    return steps


def ppermute(shape: Shape, size: int, pairs: Sequence[Tuple[int, int]]) -> Schedule:
    """Send INPUT[0:size] along every (source, destination) of *pairs*, into RESULT."""
    targets = [to for source, to in pairs if source == shape.rank]
    sources = [source for source, to in pairs if to == shape.rank]
    steps: Schedule = []
    for part in chunks(0, size):
        steps += [Send(to, INPUT, *part) for to in targets if to != shape.rank]
        steps += [
            Copy(INPUT, *part, RESULT, part[0])
            if source == shape.rank
            else Receive(source, RESULT, *part)
            for source in sources
        ]
    return steps


def _cut(rank: int, part: Range) -> Sequence[Tuple[int, Range]]:
    return [(rank, chunk) for chunk in chunks(*part)]
