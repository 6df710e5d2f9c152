"""Every collective where the workers have links to rank 0 alone, as schedules.

all_reduce is `native_reduce.star_reduce`.  A worker begins all it has to send before it waits;
rank 0 relays.
"""

from __future__ import annotations

from typing import Sequence, Tuple

from rlxdeploy.runtime.algorithm.native_spread import Counts
from rlxdeploy.runtime.algorithm.native_steps import (
    INPUT,
    KEPT,
    RESULT,
    Copy,
    Range,
    Receive,
    Reduce,
    Schedule,
    Send,
    Shape,
    chunks,
    places,
    split,
)


def barrier(shape: Shape) -> Schedule:
    """Let no rank go on before every rank has come."""
    if shape.rank:
        return [Send(0, RESULT, 0, 0), Receive(0, RESULT, 0, 0)]
    steps: Schedule = [Receive(rank, RESULT, 0, 0) for rank in shape.others]
    return steps + [Send(rank, RESULT, 0, 0) for rank in shape.others]


def broadcast(shape: Shape, size: int, root: int) -> Schedule:
    """Give every rank RESULT[0:size] of *root*, through rank 0."""
    source = root if shape.rank == 0 else 0
    targets = [rank for rank in shape.others if rank != root] if shape.rank == 0 else []
    steps: Schedule = []
    for part in chunks(0, size):
        if shape.rank and shape.rank == root:
            steps.append(Send(0, RESULT, *part))
            continue
        if shape.rank or root:
            steps.append(Receive(source, RESULT, *part))
        steps += [Send(to, RESULT, *part) for to in targets]
    return steps


def all_gather(shape: Shape, size: int) -> Schedule:
    """Fill RESULT with INPUT[0:size] of every rank, in the order of ranks."""
    whole = chunks(0, size * shape.world)
    steps: Schedule = [Copy(INPUT, 0, size, RESULT, shape.rank * size)]
    if shape.rank:
        steps += [Send(0, INPUT, *part) for part in chunks(0, size)]
        return steps + [Receive(0, RESULT, *part) for part in whole]
    for start, stop in chunks(0, size):
        steps += [
            Receive(rank, RESULT, rank * size + start, rank * size + stop) for rank in shape.others
        ]
    return steps + [Send(rank, RESULT, *part) for part in whole for rank in shape.others]


def reduce(shape: Shape, size: int, root: int) -> Schedule:
    """Reduce RESULT[0:size] of all ranks at *root*; the others' stay as they are."""
    parts = chunks(0, size)
    if shape.rank:
        steps: Schedule = [Send(0, RESULT, *part) for part in parts]
        return steps + [Receive(0, RESULT, *part) for part in parts if shape.rank == root]
    if root == 0:
        return [Reduce(shape.others, RESULT, *part) for part in parts]
    steps = [Copy(RESULT, 0, size, KEPT, 0)]
    for part in parts:
        steps += [Reduce(shape.others, KEPT, *part), Send(root, KEPT, *part)]
    return steps


def reduce_scatter(shape: Shape, size: int, unit: int) -> Schedule:
    """Reduce INPUT[0:size]; RESULT is this rank's share of the near-equal split."""
    parts = split(0, size, shape.world, unit)
    start, stop = parts[shape.rank]
    if shape.rank:
        sent: Schedule = [Send(0, INPUT, *part) for part in chunks(0, size)]
        return sent + [Receive(0, RESULT, *part) for part in chunks(0, stop - start)]
    steps: Schedule = [Copy(INPUT, 0, size, KEPT, 0)]
    steps += [Reduce(shape.others, KEPT, *part) for part in chunks(0, size)]
    steps += [Send(to, KEPT, *part) for to in shape.others for part in chunks(*parts[to])]
    return [*steps, Copy(KEPT, start, stop, RESULT, 0)]


def all_to_all(shape: Shape, counts: Counts) -> Schedule:
    """Send a part of INPUT to every rank; counts[i][j] are the bytes from rank i to rank j."""
    rank, world = shape.rank, shape.world
    if rank == 0:
        return _relay(shape, counts)
    sent = places(counts[rank])
    got = places([row[rank] for row in counts])
    steps: Schedule = [Copy(INPUT, *sent[rank], RESULT, got[rank][0])]
    for to in range(world):
        steps += [Send(0, INPUT, *part) for part in chunks(*sent[to]) if to != rank]
    for source in range(world):
        steps += [Receive(0, RESULT, *part) for part in chunks(*got[source]) if source != rank]
    return steps


def ppermute(shape: Shape, size: int, pairs: Sequence[Tuple[int, int]]) -> Schedule:
    """Send INPUT[0:size] along every (source, destination) of *pairs*, into RESULT."""
    steps: Schedule = []
    for slot, (source, to) in enumerate(pairs):
        for part in chunks(0, size):
            steps += _leg(shape.rank, (source, to), part, slot * size)
    return sorted(steps, key=lambda step: isinstance(step, Receive)) if shape.rank else steps


def _leg(rank: int, pair: Tuple[int, int], part: Range, slot: int) -> Schedule:
    """One chunk of one pair; at rank 0 a pair of two workers passes through KEPT at *slot*."""
    source, to = pair
    kept = (slot + part[0], slot + part[1])
    if source == to:
        return [Copy(INPUT, *part, RESULT, part[0])] if rank == source else []
    if rank == source:
        return [Send(0 if rank else to, INPUT, *part)]
    if rank == to:
        return [Receive(0 if rank else source, RESULT, *part)]
    return [] if rank else [Receive(source, KEPT, *kept), Send(to, KEPT, *kept)]


def _relay(shape: Shape, counts: Counts) -> Schedule:
    """Rank 0's side of all_to_all: collect what each worker sends to each, then hand it out."""
    sent = places(counts[0])
    got = places([row[0] for row in counts])
    kept = places([count for row in counts for count in row])
    steps: Schedule = [Copy(INPUT, *sent[0], RESULT, got[0][0])]
    for source in range(1, shape.world):
        for to in range(shape.world):
            if source == to:
                continue
            memory, where = (KEPT, kept[source * shape.world + to]) if to else (RESULT, got[source])
            steps += [Receive(source, memory, *part) for part in chunks(*where)]
    for to in range(1, shape.world):
        steps += [Send(to, INPUT, *part) for part in chunks(*sent[to])]
        for source in range(1, shape.world):
            where = kept[source * shape.world + to]
            steps += [Send(to, KEPT, *part) for part in chunks(*where) if source != to]
    return steps
