"""Every reduction over every kind of links, for 1 to 8 ranks: numpy says what must come out."""

from __future__ import annotations

import functools
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    List,
    NamedTuple,
    Optional,
    Tuple,
    Type,
)

import numpy as np
import pytest

from rlxdeploy.runtime.algorithm import bfloat16
from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.ring import split
from rlxdeploy.runtime.errors import NotSupported
from rlxdeploy.runtime.group import ProcessGroup
from tests.runtime.cluster import Cluster

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Nothing, fewer elements than ranks, chunks of two lengths, and more than a small native message.
SIZES = (0, 1, 5, 4099)
# More than the kernel takes at once.
LONG = 70_001


class Elements(NamedTuple):
    """A dtype to reduce, and how far from the exact result a result may be."""

    name: str
    dtype: str
    rounding: float = 0.0
    written: Optional[str] = None

    @property
    def whole(self) -> bool:
        """Whether these are integers."""
        return self.rounding == 0.0

    def made(self, rank: int, size: int) -> NDArray[Any]:
        """Return what *rank* puts in, as different from the others' as can be."""
        return _drawn(self, rank, size).copy()

    def read(self, array: NDArray[Any]) -> NDArray[np.float64]:
        """Return the numbers in *array*."""
        return (bfloat16.widen(array) if self.written else array).astype(np.float64)


@functools.cache
def _drawn(elements: Elements, rank: int, size: int) -> NDArray[Any]:
    drawn = np.random.default_rng(100 * size + rank)
    if elements.whole:
        least = 0 if elements.dtype[-2] == "u" else -9
        return drawn.integers(least, 10, size).astype(elements.dtype)
    numbers = drawn.normal(size=size).astype(np.float32)
    return bfloat16.narrow(numbers) if elements.written else numbers.astype(elements.dtype)


DTYPES = {
    each.name: each
    for each in (
        Elements("f16", "<f2", 3e-3),
        Elements("bf16", "<u2", 3e-2, "bf16"),
        Elements("f32", "<f4", 1e-6),
        Elements("f64", "<f8", 1e-14),
        Elements("i8", "|i1"),
        Elements("u8", "|u1"),
    )
}
INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


@functools.cache
def reduced(kind: ReduceKind, elements: Elements, world: int, size: int) -> NDArray[np.float64]:
    """Return the exact result."""
    stack = np.stack([elements.read(elements.made(rank, size)) for rank in range(world)])
    if kind is ReduceKind.MAX:
        return np.asarray(stack.max(axis=0))
    if kind is ReduceKind.MIN:
        return np.asarray(stack.min(axis=0))
    total = stack.sum(axis=0)
    if kind is ReduceKind.SUM:
        return np.asarray(total)
    if not elements.whole:
        return np.asarray(total / world)
    return np.asarray(np.sign(total) * ((2 * np.abs(total) + world) // (2 * world)))


def assert_close(elements: Elements, got: NDArray[Any], exact: NDArray[np.float64]) -> None:
    numbers = elements.read(got)
    room = elements.rounding * 8
    np.testing.assert_allclose(numbers, exact, rtol=room, atol=room, err_msg=elements.name)


def is_native(cluster: Cluster) -> bool:
    return "Native" in repr(cluster.groups[0]._wire)  # noqa: SLF001 - what no user needs to ask


@pytest.mark.parametrize("elements", DTYPES.values(), ids=DTYPES)
def test_every_rank_ends_with_the_same_bits_of_the_reduction(
    cluster: Cluster, elements: Elements
) -> None:
    """For every size, kind and dtype of both wires, in place and in the array's own dtype."""

    def work(group: ProcessGroup) -> List[NDArray[Any]]:
        return [
            reducer(elements.made(group.rank, size), kind, dtype=elements.written)
            for size in SIZES
            for kind in ReduceKind
            for reducer in (group.all_reduce, group.all_reduce_typed)
        ]

    everywhere = cluster.run(work)
    expected = [(size, kind) for size in SIZES for kind in ReduceKind for _ in range(2)]
    for results, (size, kind) in zip(zip(*everywhere), expected):
        assert len({result.tobytes() for result in results}) == 1
        assert_close(elements, results[0], reduced(kind, elements, len(results), size))


@pytest.mark.parametrize("kind", ReduceKind, ids=lambda kind: kind.name)
def test_deterministic_mode_rounds_a_float32_once(cluster: Cluster, kind: ReduceKind) -> None:
    """What cancels in float64 is not lost in float32; other dtypes are reduced as always."""
    world = len(cluster.groups)
    # Sums of these need 53 bits at most, so that no order of the ranks matters.
    great = np.float32(2**40) * (np.arange(world) - (world - 1) / 2).astype(np.float32)
    rows = [np.arange(LONG, dtype=np.float32) / 8 + great[rank] for rank in range(world)]
    halves = (np.arange(LONG) % 64).astype(np.float16)

    def work(group: ProcessGroup) -> Tuple[NDArray[Any], NDArray[Any]]:
        return (
            group.all_reduce(rows[group.rank].copy(), kind, deterministic=True),
            group.all_reduce(halves.copy(), ReduceKind.MAX, deterministic=True),
        )

    exact = {
        ReduceKind.SUM: np.sum(rows, axis=0, dtype=np.float64),
        ReduceKind.MEAN: np.sum(rows, axis=0, dtype=np.float64) / world,
        ReduceKind.MAX: np.max(rows, axis=0),
        ReduceKind.MIN: np.min(rows, axis=0),
    }[kind].astype(np.float32)
    for got, untouched in cluster.run(work):
        assert got.tobytes() == exact.tobytes()
        assert untouched.tobytes() == halves.tobytes()


def test_bfloat16_of_ml_dtypes_is_an_array_like_any_other(cluster: Cluster) -> None:
    """Without a word about its dtype, in any layout; results are of that dtype again."""
    bf16 = pytest.importorskip("ml_dtypes").bfloat16
    world = len(cluster.groups)
    total = sum(range(1, world + 1))

    def work(group: ProcessGroup) -> Dict[str, NDArray[Any]]:
        mine = np.full((world, 3), group.rank + 1, np.float32).astype(bf16)
        turned = np.repeat(mine, 2, 1)[:, ::2]
        turn = [(rank, (rank + 1) % world) for rank in range(world)]
        results = {
            "all_reduce": group.all_reduce(turned.copy()),
            "strided": group.all_reduce(turned),
            "typed": group.all_reduce_typed(mine.copy()),
            "named": group.all_reduce(mine.copy(), dtype="bf16"),
            "reduce": group.reduce(mine.copy(), world - 1),
            "scatter": group.reduce_scatter(mine),
            "gather": group.all_gather(mine),
            "to_all": group.all_to_all(mine),
            "to_all_v": np.concatenate(group.all_to_all_v(list(mine))),
            "permuted": group.ppermute(mine, turn),
        }
        group.broadcast(mine, world - 1)
        results["broadcast"] = mine
        averaged = np.full(5, group.rank, np.float32).astype(bf16)
        group.federated_average(averaged, 30)
        results["averaged"] = averaged
        return results

    ranks = np.arange(1, world + 1)
    for rank, results in enumerate(cluster.run(work)):
        expected: Dict[str, NDArray[Any]] = {name: np.full((world, 3), total) for name in results}
        expected["reduce"] = np.full((world, 3), total if rank == world - 1 else rank + 1)
        expected["scatter"] = np.full(3, total)
        expected["gather"] = np.broadcast_to(ranks[:, None, None], (world, world, 3))
        expected["to_all"] = np.broadcast_to(ranks[:, None], (world, 3))
        expected["to_all_v"] = np.repeat(ranks, 3)
        expected["permuted"] = np.full((world, 3), (rank - 1) % world + 1)
        expected["broadcast"] = np.full((world, 3), world)
        expected["averaged"] = np.full(5, (world - 1) / 2)
        for name, got in results.items():
            assert got.dtype == bf16, name
            assert got.astype(np.float32).tolist() == expected[name].tolist(), name


def extremes(dtype: str, rank: int) -> NDArray[Any]:
    """Return what overflows in a sum of two, what does not, and what rounds."""
    range_ = np.iinfo(dtype)
    ends = [range_.max, range_.min, range_.max - rank, range_.min + rank]
    return np.array([*ends, rank, 1 - rank % 2, rank // 2, 3], dtype)


def reduced_integers(kind: ReduceKind, dtype: str, world: int, *, wraps: bool) -> NDArray[Any]:
    """Return what whole numbers, as long as need be, say of the extremes of all ranks."""
    columns = list(zip(*[extremes(dtype, rank).tolist() for rank in range(world)]))
    if kind in {ReduceKind.MAX, ReduceKind.MIN}:
        return np.array([(max if kind is ReduceKind.MAX else min)(each) for each in columns], dtype)
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    totals = [sum(column) for column in columns]
    if wraps:
        totals = [(total - least) % (most - least + 1) + least for total in totals]
    else:
        # Every column has one sign, so it does not matter at which hop its sum is clamped.
        totals = [max(least, min(most, total)) for total in totals]
    if kind is ReduceKind.MEAN:
        halves = [(2 * abs(total) + world) // (2 * world) for total in totals]
        totals = [half if total >= 0 else -half for half, total in zip(halves, totals)]
    return np.array(totals, dtype)


@pytest.mark.parametrize("kind", ReduceKind, ids=lambda kind: kind.name)
def test_integers_are_clamped_on_one_wire_and_wrap_on_the_other(
    cluster: Cluster, kind: ReduceKind
) -> None:
    """8-bit sums stay in range on rlx, all sums wrap on native; a mean rounds half away from 0.

    The rlx wire has no wider integers: it says so, and the group goes on.
    """
    native, world = is_native(cluster), len(cluster.groups)

    def work(group: ProcessGroup) -> Dict[Tuple[str, str], NDArray[Any]]:
        results = {}
        for dtype in INTEGERS:
            array = extremes(dtype, group.rank)
            for reducer in (group.all_reduce, group.all_reduce_typed, group.reduce_scatter):
                if native or dtype in {"i1", "u1"}:
                    results[reducer.__name__, dtype] = reducer(array.copy(), kind)
                else:
                    with pytest.raises(NotSupported, match="RLX_WIRE=native"):
                        reducer(array, kind)
            if native or dtype in {"i1", "u1"}:
                results["reduce", dtype] = group.reduce(array.copy(), world - 1, kind)
        return results

    for rank, results in enumerate(cluster.run(work)):
        for (name, dtype), got in results.items():
            expected = reduced_integers(kind, dtype, world, wraps=native)
            if name == "reduce_scatter":
                expected = expected[split(expected.size, world)[rank]]
            if name == "reduce" and rank != world - 1:
                expected = extremes(dtype, rank)
            assert got.tolist() == expected.tolist(), (name, dtype)


def test_reduce_changes_the_roots_array_alone(cluster: Cluster) -> None:
    """Whichever rank is the root, it has the reduction, and the others what they had."""
    world = len(cluster.groups)
    roots = [(0, size) for size in SIZES] + [(root, SIZES[-1]) for root in range(1, world)]
    cases = [(elements, root, size) for elements in DTYPES.values() for root, size in roots]

    def work(group: ProcessGroup) -> List[NDArray[Any]]:
        return [
            group.reduce(
                elements.made(group.rank, size), root, ReduceKind.MEAN, dtype=elements.written
            )
            for elements, root, size in cases
        ]

    for rank, results in enumerate(cluster.run(work)):
        for result, (elements, root, size) in zip(results, cases):
            if rank == root:
                assert_close(elements, result, reduced(ReduceKind.MEAN, elements, world, size))
            else:
                assert result.tobytes() == elements.made(rank, size).tobytes(), elements.name


def test_reduce_scatter_leaves_each_rank_its_part(cluster: Cluster) -> None:
    """Rank i has the i-th part of the reduction, and its own array is as it was."""
    world = len(cluster.groups)
    cases = [(elements, size) for elements in DTYPES.values() for size in SIZES]

    def work(group: ProcessGroup) -> List[NDArray[Any]]:
        parts = []
        for elements, size in cases:
            array = elements.made(group.rank, size)
            before = array.tobytes()
            parts.append(group.reduce_scatter(array, ReduceKind.MEAN, dtype=elements.written))
            assert array.tobytes() == before, elements.name
        return parts

    for rank, results in enumerate(cluster.run(work)):
        for result, (elements, size) in zip(results, cases):
            exact = reduced(ReduceKind.MEAN, elements, world, size)[split(size, world)[rank]]
            assert_close(elements, result, exact)


LAYOUTS: Dict[str, Callable[[], Any]] = {
    "0-d": lambda: np.array(2, np.float32),
    "empty": lambda: np.ones((3, 0, 2), np.float32),
    "strided": lambda: np.ones((4, 6), np.float32)[::2, 1::2],
    "T": lambda: np.ones((4, 6), np.float16).T,
    "big-endian": lambda: np.ones(7, ">f4"),
    "reversed": lambda: np.ones((2, 3, 4), np.float64)[..., ::-1],
}


def test_arrays_of_any_layout_work_in_every_reduction(cluster: Cluster) -> None:
    """The caller's array keeps shape, strides and dtype and holds the result."""
    world = len(cluster.groups)
    total = sum(range(1, world + 1))

    def reduce_all(group: ProcessGroup, name: str, layout: Callable[[], NDArray[Any]]) -> None:
        for reduction in (group.all_reduce, group.all_reduce_typed):
            array = layout()
            array *= group.rank + 1
            strides = array.strides
            assert reduction(array) is array
            assert array.strides == strides, name
            assert array.tolist() == (layout() * total).tolist(), name
        array = layout()
        array *= group.rank + 1
        group.broadcast(array, world - 1)
        assert array.tolist() == (layout() * world).tolist(), name
        array = layout()
        array *= group.rank + 1
        assert group.reduce(array, world - 1) is array
        last = group.rank == world - 1
        assert array.tolist() == (layout() * (total if last else group.rank + 1)).tolist(), name
        own = group.reduce_scatter(layout())
        part = split(array.size, world)[group.rank]
        assert own.dtype == array.dtype, name
        assert own.tolist() == (layout() * world).ravel()[part].tolist(), name

    def work(group: ProcessGroup) -> None:
        for name, layout in LAYOUTS.items():
            reduce_all(group, name, layout)

    cluster.run(work)


def test_an_array_of_another_class_is_reduced_as_the_plain_one(cluster: Cluster) -> None:
    """A matrix has two dimensions whatever happens to it; its memory is reduced like any other."""
    world = len(cluster.groups)
    total = sum(range(1, world + 1))

    def work(group: ProcessGroup) -> List[Any]:
        matrix = np.full((2, 3), group.rank + 1.0).view(np.matrix)
        assert group.all_reduce(matrix) is matrix
        return [matrix.tolist(), group.all_gather(matrix[:, 1]).tolist()]

    assert cluster.run(work) == [[[[total] * 3] * 2, [[[total]] * 2] * world]] * world


def test_arguments_that_fit_no_group_change_nothing(cluster: Cluster) -> None:
    """They are refused before anything is sent, on the rank that made them, and it goes on."""
    world = len(cluster.groups)

    wrongs: List[Tuple[Callable[[ProcessGroup], Any], Type[Exception]]] = [
        (lambda group: group.all_reduce(np.zeros(3, np.complex64)), TypeError),
        (lambda group: group.all_reduce([1.0]), TypeError),  # type: ignore[arg-type] # the claim
        (lambda group: group.all_reduce(np.ma.masked_less(np.ones(2), 0)), TypeError),
        (lambda group: group.all_reduce(np.frombuffer(b"1234", "<f4")), ValueError),
        (lambda group: group.reduce(np.zeros(1), world), ValueError),
        (lambda group: group.reduce_scatter(np.zeros(1, np.complex64)), TypeError),
        (lambda group: group.all_reduce(np.zeros(1, np.int16), dtype="bf16"), TypeError),
        (lambda group: group.all_reduce_typed(np.zeros(1), dtype="fp8"), TypeError),
        (lambda group: group.all_reduce(np.zeros(1), "median"), ValueError),  # type: ignore[arg-type] # the claim
        (lambda group: group.reduce(np.zeros(1), 0, "median"), ValueError),  # type: ignore[arg-type] # the claim
    ]

    def misuse(group: ProcessGroup) -> NDArray[Any]:
        for wrong, error in wrongs:
            with pytest.raises(error):
                wrong(group)
        return group.all_reduce(np.ones(2))

    assert [each.tolist() for each in cluster.run(misuse)] == [[world] * 2] * world
