"""The schedules of the native wire, without a socket: right, in step, and safe to send late.

The simulator is as unkind as the rules allow: a message is copied out of its sender's memory only
when it is received, so that writing over it too early shows; ranks advance in random order.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Callable, Dict, List, Sequence, Set, Tuple, Union

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlxdeploy.runtime.algorithm.native_select import plan, plan_routes
from rlxdeploy.runtime.algorithm.native_steps import (
    INPUT,
    KEPT,
    RESULT,
    Copy,
    Receive,
    Reduce,
    Schedule,
    Send,
    Shape,
    Step,
    split,
)
from rlxdeploy.runtime.vocabulary import EXACT, Dtype, Op

if TYPE_CHECKING:
    from numpy.typing import NDArray


UNIT = 4
KI, MI = 1 << 10, 1 << 20


class StandsStillError(Exception):
    """No rank can go on."""


class OutOfStepError(Exception):
    """A rank received another size than it awaited."""


class World:
    """All ranks: each has a schedule, three memories and a queue of messages to every other."""

    def __init__(
        self, schedules: Sequence[Schedule], memories: Sequence[List[NDArray[np.uint8]]], seed: int
    ) -> None:
        self.schedules, self.memories = schedules, memories
        self.random = random.Random(seed)  # noqa: S311 - an order of steps
        self.at = [0] * len(schedules)
        # Of a message: whose memory it is in, and where.
        self.queues: Dict[Tuple[int, int], List[Tuple[int, int, int]]] = {}

    def run(self) -> None:
        """Let ranks advance in random order until all are done."""
        while True:
            open_ranks = [r for r, steps in enumerate(self.schedules) if self.at[r] < len(steps)]
            if not open_ranks:
                break
            self.random.shuffle(open_ranks)
            if not any(self.advance(rank) for rank in open_ranks):
                raise StandsStillError(open_ranks)
        if any(self.queues.values()):
            raise OutOfStepError("somebody was sent what nobody received")

    def advance(self, rank: int) -> bool:
        """Carry out the next step of *rank*, if it can be carried out now."""
        step = self.schedules[rank][self.at[rank]]
        if isinstance(step, Send):
            self.queues.setdefault((rank, step.to), []).append(step[1:])
        elif isinstance(step, Copy):
            memory = self.memories[rank]
            moved = memory[step.source][step.start : step.stop]
            memory[step.memory][step.at : step.at + moved.size] = moved
        elif not self._receive(rank, step):
            return False
        self.at[rank] += 1
        return True

    def _receive(self, rank: int, step: Union[Receive, Reduce]) -> bool:
        sources = step.sources if isinstance(step, Reduce) else (step.source,)
        if not all(self.queues.get((source, rank)) for source in sources):
            return False
        if isinstance(step, Reduce) and step.fence:
            self._deliver_from(rank, step.sources)
        own = self.memories[rank][step.memory][step.start : step.stop].view(np.uint16)
        for source in sources:
            memory, start, stop = self.queues[source, rank].pop(0)
            came = self._held(source, memory, start, stop)
            if came.size != step.stop - step.start:
                raise OutOfStepError(f"{came.size} bytes for {step}")
            own[:] = (
                own + came.view(np.uint16) if isinstance(step, Reduce) else came.view(np.uint16)
            )
        return True

    def _held(self, source: int, memory: int, start: int, stop: int) -> NDArray[np.uint8]:
        return self.memories[source][memory][start:stop]

    def _deliver_from(self, rank: int, sources: Sequence[int]) -> None:
        """Take what *rank* has sent out of its memory, as its fence waits for."""
        for to in sources:
            queue = self.queues.get((rank, to), [])
            for place, (memory, start, stop) in enumerate(queue):
                copy = self._held(rank, memory, start, stop).copy()
                self.memories[rank].append(copy)
                queue[place] = (len(self.memories[rank]) - 1, 0, copy.size)


def inputs(world: int, size: int) -> List[NDArray[np.uint8]]:
    """Return rows whose every sum is told from every other: rank r holds 4^r in each element."""
    return [np.full(size // 2, 1 << 2 * r, np.uint16).view(np.uint8) for r in range(world)]


def simulate(
    shapes: Sequence[Shape],
    schedule: Callable[[Shape], Schedule],
    data: Sequence[NDArray[np.uint8]],
    sizes: Tuple[int, int],
    seed: int = 0,
) -> List[NDArray[np.uint8]]:
    """Run *schedule* on every rank; *sizes* are those of RESULT and KEPT."""
    schedules = [schedule(shape) for shape in shapes]
    memories = [
        [np.zeros(sizes[0], np.uint8), row.copy(), np.zeros(sizes[1], np.uint8)] for row in data
    ]
    for memory, row in zip(memories, data):
        if sizes[0] == row.size:
            memory[RESULT][:] = row
    World(schedules, memories, seed).run()
    return [memory[RESULT] for memory in memories]


def reduced(
    shapes: Sequence[Shape], size: int, seed: int, change: Callable[[Schedule], Schedule] = list
) -> None:
    """Check all_reduce: every rank's every element is the sum of all ranks'."""
    data = inputs(len(shapes), size)
    dtype = Dtype.FLOAT16 if seed % 3 == 0 else Dtype.FLOAT32

    def schedule(shape: Shape) -> Schedule:
        steps = plan(shape, Op.ALL_REDUCE, dtype, size, EXACT if seed % 5 == 0 else 0).steps
        return change(steps) if shape.rank == len(shapes) - 1 else steps

    expected = sum(row.view(np.uint16) for row in data)
    for row in simulate(shapes, schedule, data, (size, 0), seed):
        np.testing.assert_array_equal(row.view(np.uint16), expected)


def everybody(world: int, *, crowded: bool, star: bool) -> List[Shape]:
    return [Shape(rank, world, crowded, star and world > 2) for rank in range(world)]


SHAPES = st.builds(
    lambda world, crowded, star: everybody(world, crowded=crowded, star=star),
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
)
# Around every threshold, and in between.
SIZES = st.sampled_from(
    [0, UNIT, 3 * UNIT, 16 * KI, 16 * KI + UNIT, 256 * KI, 600 * KI, MI]
).flatmap(lambda size: st.integers(0, 3).map(lambda more: size + more * UNIT))


@settings(max_examples=150, deadline=None)
@given(SHAPES, SIZES, st.integers(0, 1000))
def test_all_reduce_sums_every_rank_once(shapes: List[Shape], size: int, seed: int) -> None:
    """For every number of ranks, topology and size, whatever the order in which ranks advance."""
    reduced(shapes, size, seed)


@pytest.mark.parametrize("world", [4, 8])
def test_all_reduce_of_long_arrays_goes_in_windows(world: int) -> None:
    """Past 16 MiB too, every element is summed once."""
    reduced(everybody(world, crowded=False, star=False), 16 * MI + 5 * UNIT, 1)


@settings(max_examples=100, deadline=None)
@given(SHAPES, SIZES, st.integers(0, 1000), st.data())
def test_rooted_collectives_serve_every_root(
    shapes: List[Shape], size: int, seed: int, data: st.DataObject
) -> None:
    """All end with the root's array after broadcast, the root alone with the sum after reduce."""
    world = len(shapes)
    root = data.draw(st.integers(0, world - 1))
    rows = inputs(world, size)
    chosen = plan(shapes[0], Op.REDUCE, Dtype.FLOAT32, size, root)
    spread = simulate(
        shapes,
        lambda shape: plan(shape, Op.BROADCAST, Dtype.BYTES, size, root).steps,
        rows,
        (size, 0),
        seed,
    )
    folded = simulate(
        shapes,
        lambda shape: plan(shape, Op.REDUCE, Dtype.FLOAT32, size, root).steps,
        rows,
        (size, chosen.kept),
        seed,
    )
    for rank in range(world):
        np.testing.assert_array_equal(spread[rank], rows[root])
        expected = sum(row.view(np.uint16) for row in rows) if rank == root else None
        own = rows[rank].view(np.uint16) if expected is None else expected
        np.testing.assert_array_equal(folded[rank].view(np.uint16), own)


@settings(max_examples=100, deadline=None)
@given(SHAPES, SIZES, st.integers(0, 1000))
def test_gather_and_scatter_put_every_part_in_its_place(
    shapes: List[Shape], size: int, seed: int
) -> None:
    """all_gather lines up the inputs by rank; reduce_scatter leaves rank i the i-th part."""
    world = len(shapes)
    rows = inputs(world, size)
    gathered = simulate(
        shapes,
        lambda shape: plan(shape, Op.ALL_GATHER, Dtype.BYTES, size).steps,
        rows,
        (size * world, 0),
        seed,
    )
    for row in gathered:
        np.testing.assert_array_equal(row, np.concatenate(rows))

    kept = plan(shapes[0], Op.REDUCE_SCATTER, Dtype.FLOAT32, size).kept
    parts = split(0, size, world, UNIT)
    longest = parts[0][1] - parts[0][0]
    scattered = simulate(
        shapes,
        lambda shape: plan(shape, Op.REDUCE_SCATTER, Dtype.FLOAT32, size).steps,
        rows,
        (longest, kept) if longest != size else (size, kept),
        seed,
    )
    total = np.sum([row.view(np.uint16) for row in rows], axis=0)
    for rank, (start, stop) in enumerate(parts):
        mine = scattered[rank][: stop - start].view(np.uint16)
        np.testing.assert_array_equal(mine, total[start // 2 : stop // 2])


@settings(max_examples=50, deadline=None)
@given(SHAPES, st.data())
def test_all_to_all_exchanges_parts_of_any_length(shapes: List[Shape], data: st.DataObject) -> None:
    """What rank i has for rank j, however much it is, ends where j expects it from i."""
    world = len(shapes)
    count = st.sampled_from([0, UNIT, 7 * UNIT, 513 * KI]).map(int)
    routes = tuple(tuple(data.draw(count) for _ in range(world)) for _ in range(world))
    rows = [
        np.concatenate([np.full(n, 1 + i * 8 + j, np.uint8) for j, n in enumerate(routes[i])])
        for i in range(world)
    ]
    into = max(sum(row[j] for row in routes) for j in range(world))
    kept = plan_routes(shapes[0], Op.ALL_TO_ALL, 0, routes).kept
    got = simulate(
        shapes,
        lambda shape: plan_routes(shape, Op.ALL_TO_ALL, 0, routes).steps,
        rows,
        (into + 1, kept),
    )
    for j in range(world):
        expected = [np.full(routes[i][j], 1 + i * 8 + j, np.uint8) for i in range(world)]
        row = np.concatenate(expected)
        np.testing.assert_array_equal(got[j][: row.size], row)


@settings(max_examples=100, deadline=None)
@given(SHAPES, SIZES, st.randoms())
def test_ppermute_follows_every_pair(shapes: List[Shape], size: int, order: random.Random) -> None:
    """Each destination gets its source's array; who is none keeps what it had."""
    world = len(shapes)
    sources, targets = list(range(world)), list(range(world))
    order.shuffle(sources)
    order.shuffle(targets)
    pairs = tuple(zip(sources, targets[: order.randint(0, world)]))
    rows = inputs(world, size)
    kept = plan_routes(shapes[0], Op.PPERMUTE, size, pairs).kept
    got = simulate(
        shapes,
        lambda shape: plan_routes(shape, Op.PPERMUTE, size, pairs).steps,
        rows,
        (size + 1, kept),
    )
    arrived = {to: rows[source] for source, to in pairs}
    for rank in range(world):
        np.testing.assert_array_equal(got[rank][:size], arrived.get(rank, np.zeros(size, np.uint8)))


def without(place: int) -> Callable[[Schedule], Schedule]:
    return lambda steps: [*steps[:place], *steps[place + 1 :]]


def shortened(place: int) -> Callable[[Schedule], Schedule]:
    """Let one step move an element less."""

    def change(steps: Schedule) -> Schedule:
        step = steps[place]
        if isinstance(step, Copy) or step.stop - step.start < UNIT:
            return steps[:-1]
        return [*steps[:place], step._replace(stop=step.stop - UNIT), *steps[place + 1 :]]

    return change


def unfenced(steps: Schedule) -> Schedule:
    """Fold without waiting for what is being sent from there."""
    return [step._replace(fence=False) if isinstance(step, Reduce) else step for step in steps]


@settings(max_examples=150, deadline=None)
@example(everybody(4, crowded=False, star=False), MI, 1, 0)
@given(SHAPES, SIZES, st.integers(0, 1000), st.integers(0, 1000))
def test_a_schedule_with_a_fault_is_noticed(
    shapes: List[Shape], size: int, seed: int, place: int
) -> None:
    """The simulator can fail: without a step, or with a shorter one, it stops or sums wrongly."""
    steps = plan(shapes[-1], Op.ALL_REDUCE, Dtype.FLOAT32, size).steps
    if not steps or size < 2 * UNIT:
        return
    for change in (without(place % len(steps)), shortened(place % len(steps))):
        with pytest.raises((StandsStillError, OutOfStepError, AssertionError)):
            reduced(shapes, size, seed * 15 + 1, change)


def test_a_missing_fence_is_noticed() -> None:
    """Where both ranks fold into what they send, one of them would send its result instead."""
    shapes = everybody(2, crowded=False, star=False)

    def try_orders() -> None:
        for seed in range(1, 200, 15):
            reduced(shapes, 8 * UNIT, seed, unfenced)

    with pytest.raises(AssertionError):
        try_orders()


def test_a_mesh_sends_no_message_to_itself_and_a_star_only_to_the_middle() -> None:
    """Schedules name only ranks there are links to."""
    for world in range(2, 7):
        for star in (False, True):
            for shape in everybody(world, crowded=True, star=star):
                for op in (Op.BARRIER, Op.ALL_REDUCE, Op.ALL_GATHER, Op.REDUCE_SCATTER):
                    for step in plan(shape, op, Dtype.FLOAT32, 100 * KI).steps:
                        assert shape.rank not in _others(step)
                        assert not shape.star or not shape.rank or _others(step) <= {0}


def _others(step: Step) -> Set[int]:
    if isinstance(step, Send):
        return {step.to}
    if isinstance(step, Receive):
        return {step.source}
    return set(step.sources) if isinstance(step, Reduce) else set()


def test_kept_memory_is_named_only_where_it_is_counted() -> None:
    """A plan says how much it keeps, so that memory is there before it is used."""
    for world in (2, 3, 5):
        for shape in everybody(world, crowded=True, star=True):
            chosen = plan(shape, Op.REDUCE, Dtype.FLOAT32, MI, world - 1)
            ends = [step.stop for step in chosen.steps if getattr(step, "memory", None) == KEPT]
            assert chosen.kept >= max(ends, default=0)
            assert INPUT not in {getattr(step, "memory", None) for step in chosen.steps}
