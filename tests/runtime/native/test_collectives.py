"""Every collective of the native wire gives on every rank what numpy gives on all data at once."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import pytest

from rlxdeploy.runtime.algorithm.elements import wire_type
from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.native_steps import split
from rlxdeploy.runtime.link.native import Native
from rlxdeploy.runtime.vocabulary import Dtype
from tests.runtime.native.ranks import call, group, results

Data = List["np.ndarray[Any, Any]"]
Body = Callable[[Native, Data], Tuple[Any, Any]]
F32 = Dtype.FLOAT32


def share(data: np.ndarray[Any, Any], rank: int, world: int) -> np.ndarray[Any, Any]:
    start, stop = split(0, data.nbytes, world, data.itemsize)[rank]
    return data[start // data.itemsize : stop // data.itemsize]


def all_reduce(native: Native, data: Data) -> Tuple[Any, Any]:
    mine = data[native.shape.rank].copy()
    native.all_reduce(mine, ReduceKind.SUM, F32, call())
    return mine, sum(data)


def reduce(native: Native, data: Data) -> Tuple[Any, Any]:
    rank, root = native.shape.rank, native.shape.world - 1
    mine = data[rank].copy()
    native.reduce(mine, root, ReduceKind.SUM, F32, call())
    return mine, sum(data) if rank == root else data[rank]


def reduce_scatter(native: Native, data: Data) -> Tuple[Any, Any]:
    rank, world = native.shape.rank, native.shape.world
    expected = share(np.asarray(sum(data)), rank, world)
    mine = np.empty(expected.size, np.float32)
    native.reduce_scatter(data[rank], mine, ReduceKind.SUM, F32, call())
    return mine, expected


def broadcast(native: Native, data: Data) -> Tuple[Any, Any]:
    rank, root = native.shape.rank, native.shape.world - 1
    mine = data[rank].copy()
    native.broadcast(mine, root, call())
    return mine, data[root]


def all_gather(native: Native, data: Data) -> Tuple[Any, Any]:
    mine = np.empty(data[0].size * len(data), np.float32)
    native.all_gather(data[native.shape.rank], mine, call())
    return mine, np.concatenate(data)


def all_to_all(native: Native, data: Data) -> Tuple[Any, Any]:
    rank, world = native.shape.rank, native.shape.world
    size = data[0].size // world
    mine = np.empty(size * world, np.float32)
    native.all_to_all(data[rank][: size * world], mine, call())
    return mine, np.concatenate([each[rank * size : (rank + 1) * size] for each in data])


def all_to_all_v(native: Native, data: Data) -> Tuple[Any, Any]:
    """Rank i sends to rank j a part that is the longer the further j is from i."""
    rank, world = native.shape.rank, native.shape.world

    def part(source: int, to: int) -> np.ndarray[Any, Any]:
        return data[source][: data[source].size * ((to - source) % world) // world]

    got = native.all_to_all_v([part(rank, to) for to in range(world)], call())
    assert [each.size for each in got] == [part(i, rank).size for i in range(world)]
    return np.concatenate(got), np.concatenate([part(i, rank) for i in range(world)])


def ppermute(native: Native, data: Data) -> Tuple[Any, Any]:
    """Every rank but the last sends to the next; rank 0 receives nothing."""
    rank, world = native.shape.rank, native.shape.world
    mine = np.zeros(data[0].size, np.float32)
    native.ppermute(data[rank], mine, tuple((i, i + 1) for i in range(world - 1)), call())
    return mine, data[rank - 1] if rank else np.zeros(data[0].size, np.float32)


def barrier(native: Native, data: Data) -> Tuple[Any, Any]:
    native.barrier(call())
    return data[0], data[0]


COLLECTIVES: Dict[str, Body] = {
    each.__name__: each
    for each in (
        all_reduce,
        reduce,
        reduce_scatter,
        broadcast,
        all_gather,
        all_to_all,
        all_to_all_v,
        ppermute,
        barrier,
    )
}
KINDS = (ReduceKind.SUM, ReduceKind.MEAN, ReduceKind.MAX, ReduceKind.MIN)
# Elements: nothing, fewer than ranks, one message, a whole exchange, several chunks and a rest.
SIZES = (0, 3, 1000, 60_000, 333_333)


def inputs(world: int, size: int) -> Data:
    """Return integers, whose sums are exact in float32 whatever their order."""
    random = np.random.default_rng(size)
    return [random.integers(-1000, 1000, size).astype(np.float32) for _ in range(world)]


@pytest.mark.parametrize("star", [False, True], ids=["mesh", "star"])
@pytest.mark.parametrize("world", [1, 2, 3, 4, 5])
def test_every_rank_ends_with_what_numpy_computes(world: int, star: bool) -> None:  # noqa: FBT001 - a case
    """Every collective is right for every number of ranks, size and topology, call after call."""
    with group(world, star=star) as natives:
        for size in SIZES:
            data = inputs(world, size)
            for name, body in COLLECTIVES.items():
                for got, expected in results(natives, lambda native, _: body(native, data)):  # noqa: B023 - run before the next
                    np.testing.assert_array_equal(got, expected, err_msg=f"{name} of {size}")


@pytest.mark.parametrize("size", [3, 60_000, 333_333])
@pytest.mark.parametrize("world", [2, 4, 8])
def test_ranks_with_cores_of_their_own_agree_too(world: int, size: int) -> None:
    """Recursive doubling, halving-doubling and dissemination give what the star gives."""
    data = inputs(world, size)
    with group(world, crowded=False) as natives:
        for body in (all_reduce, barrier, all_gather):
            for got, expected in results(natives, lambda native, _: body(native, data)):  # noqa: B023 - run before the next
                np.testing.assert_array_equal(got, expected)


def test_long_arrays_go_window_by_window() -> None:
    """Past 16 MiB four ranks reduce one window after the other, and all of them right."""
    data = [np.arange(5_000_001, dtype=np.float32) % (7 + rank) for rank in range(4)]
    with group(4) as natives:
        for got, expected in results(natives, lambda native, _: all_reduce(native, data)):
            np.testing.assert_array_equal(got, expected)


def awkward(rank: int, size: int, dtype: str) -> np.ndarray[Any, Any]:
    """Return numbers to round, with NaNs, signed zeros and infinities among them."""
    mine = (np.random.default_rng(size + rank).standard_normal(size) * 100).astype(np.float32)
    mine[:: 7 + rank] = np.nan
    mine[:: 11 + rank] = -0.0
    mine[:: 13 + rank] = np.inf
    bits: np.ndarray[Any, Any] = (mine.view(np.uint32) >> 16).astype(np.uint16)
    return bits if dtype == "bf16" else mine.astype(dtype)


@pytest.mark.parametrize("crowded", [False, True])
@pytest.mark.parametrize("world", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bf16"])
def test_all_ranks_end_with_the_same_bits(dtype: str, world: int, crowded: bool) -> None:  # noqa: FBT001 - a case
    """Rounding, signed zeros and NaNs fall alike on every rank, whatever the algorithm."""
    with group(world, crowded=crowded) as natives, np.errstate(all="ignore"):
        for size in (5, 50_000, 400_000):
            data = [awkward(rank, size, dtype) for rank in range(world)]
            code = Dtype.BFLOAT16 if dtype == "bf16" else wire_type(data[0].dtype)

            def body(native: Native, rank: int) -> List[bytes]:
                reduced = []
                for kind in KINDS:
                    mine = data[rank].copy()  # noqa: B023 - run before the next
                    native.all_reduce(mine, kind, code, call())  # noqa: B023 - run before the next
                    reduced.append(mine.tobytes())
                return reduced

            first, *others = results(natives, body)
            assert all(other == first for other in others), size
