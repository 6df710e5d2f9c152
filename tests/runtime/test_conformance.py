"""Every collective over every kind of links, for 1 to 8 ranks: numpy says what must come out.

Integers stay small: the rlx wire clamps a sum of 8-bit integers where the native one wraps.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

import numpy as np
import pytest

from rlxdeploy.runtime.algorithm import bfloat16
from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.ring import split
from rlxdeploy.runtime.errors import NotSupported
from rlxdeploy.runtime.group import ProcessGroup
from tests.runtime.cluster import KINDS, Cluster, Kind, start

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZES = (0, 1, 2, 5, 7, 1000, 4099)


def worlds(kind: Kind) -> Sequence[int]:
    """Return for how many ranks *kind* is tried: what costs least is tried for all."""
    if kind.host is None:
        return range(1, 9)
    # IPv6 differs in how a connection is made, not in what goes over it.
    return (3,) if kind.host == "::1" else (1, 2, 3, 4, 5, 8)


CASES = [(kind, world) for kind in KINDS for world in worlds(kind)]


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
        drawn = np.random.default_rng(100 * size + rank)
        if self.whole:
            least = 0 if self.dtype[-2] == "u" else -9
            return drawn.integers(least, 10, size).astype(self.dtype)
        numbers = drawn.normal(size=size).astype(np.float32)
        return bfloat16.narrow(numbers) if self.written else numbers.astype(self.dtype)

    def read(self, array: NDArray[Any]) -> NDArray[np.float64]:
        """Return the numbers in *array*."""
        return (bfloat16.widen(array) if self.written else array).astype(np.float64)


RLX = {
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
WIDE = {
    f"{sign}{8 * size}": Elements(f"{sign}{8 * size}", f"<{sign}{size}")
    for sign in "iu"
    for size in (2, 4, 8)
}


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
    np.testing.assert_allclose(numbers, exact, rtol=room, atol=room)


@pytest.fixture(scope="module", params=CASES, ids=lambda param: f"{param[0].name}-{param[1]}")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    kind, world = request.param
    whole = start(kind, world)
    yield whole
    whole.close()


def is_native(cluster: Cluster) -> bool:
    return "Native" in repr(cluster.groups[0]._wire)  # noqa: SLF001 - what no user needs to ask


Reducer = Callable[[ProcessGroup, "NDArray[Any]", ReduceKind, Optional[str]], "NDArray[Any]"]
REDUCERS: Dict[str, Reducer] = {
    "all_reduce": lambda group, array, kind, written: group.all_reduce(array, kind, dtype=written),
    "typed": lambda group, array, kind, written: group.all_reduce_typed(array, kind, dtype=written),
}


@pytest.mark.parametrize("elements", RLX.values(), ids=RLX)
@pytest.mark.parametrize("reducer", REDUCERS.values(), ids=REDUCERS)
def test_every_rank_ends_with_the_same_bits_of_the_reduction(
    cluster: Cluster, reducer: Reducer, elements: Elements
) -> None:
    """For every size, kind and dtype of the wire, in place and in the array's own dtype."""

    def work(group: ProcessGroup) -> List[NDArray[Any]]:
        return [
            reducer(group, elements.made(group.rank, size), kind, elements.written)
            for size in SIZES
            for kind in ReduceKind
        ]

    everywhere = cluster.run(work)
    expected = [(size, kind) for size in SIZES for kind in ReduceKind]
    for results, (size, kind) in zip(zip(*everywhere), expected):
        assert len({result.tobytes() for result in results}) == 1
        assert_close(elements, results[0], reduced(kind, elements, len(results), size))


@pytest.mark.parametrize("kind", ReduceKind, ids=lambda kind: kind.name)
def test_deterministic_mode_rounds_a_float32_once(cluster: Cluster, kind: ReduceKind) -> None:
    """What cancels in float64 is not lost in float32; other dtypes are reduced as always."""
    world = len(cluster.groups)
    # Sums of these need 53 bits at most, so that no order of the ranks matters.
    great = np.float32(2**40) * (np.arange(world) - (world - 1) / 2).astype(np.float32)
    rows = [np.arange(1001, dtype=np.float32) / 8 + great[rank] for rank in range(world)]
    halves = np.arange(1001, dtype=np.float16) % 64

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


@pytest.mark.parametrize("elements", WIDE.values(), ids=WIDE)
def test_wider_integers_are_reduced_where_the_wire_has_them(
    cluster: Cluster, elements: Elements
) -> None:
    """The native wire reduces them; the rlx wire says that it does not, and goes on."""
    native = is_native(cluster)

    def work(group: ProcessGroup) -> Any:  # noqa: ANN401 - an array or nothing
        array = elements.made(group.rank, 100)
        if native:
            return group.all_reduce(array, ReduceKind.MEAN)
        with pytest.raises(NotSupported, match="RLX_WIRE=native"):
            group.all_reduce(array)
        return None

    results = cluster.run(work)
    if native:
        exact = reduced(ReduceKind.MEAN, elements, len(results), 100)
        for result in results:
            assert_close(elements, result, exact)


@pytest.mark.parametrize("elements", RLX.values(), ids=RLX)
def test_reduce_changes_the_roots_array_alone(cluster: Cluster, elements: Elements) -> None:
    """Whichever rank is the root, it has the reduction, and the others what they had."""
    world = len(cluster.groups)

    def work(group: ProcessGroup) -> List[NDArray[Any]]:
        return [
            group.reduce(
                elements.made(group.rank, size), root, ReduceKind.MEAN, dtype=elements.written
            )
            for root in range(world)
            for size in SIZES
        ]

    cases = [(root, size) for root in range(world) for size in SIZES]
    for rank, results in enumerate(cluster.run(work)):
        for result, (root, size) in zip(results, cases):
            if rank == root:
                assert_close(elements, result, reduced(ReduceKind.MEAN, elements, world, size))
            else:
                assert result.tobytes() == elements.made(rank, size).tobytes()


@pytest.mark.parametrize("elements", RLX.values(), ids=RLX)
def test_reduce_scatter_leaves_each_rank_its_part(cluster: Cluster, elements: Elements) -> None:
    """Rank i has the i-th part of the reduction, and its own array is as it was."""
    world = len(cluster.groups)

    def work(group: ProcessGroup) -> List[NDArray[Any]]:
        parts = []
        for size in SIZES:
            array = elements.made(group.rank, size)
            before = array.tobytes()
            parts.append(group.reduce_scatter(array, ReduceKind.MEAN, dtype=elements.written))
            assert array.tobytes() == before
        return parts

    for rank, results in enumerate(cluster.run(work)):
        for result, size in zip(results, SIZES):
            exact = reduced(ReduceKind.MEAN, elements, world, size)[split(size, world)[rank]]
            assert_close(elements, result, exact)


@pytest.mark.parametrize("dtype", ["<f4", "u1", "<i8", ">f8"])
def test_all_to_all_transposes_ranks_and_rows(cluster: Cluster, dtype: str) -> None:
    """Row i goes to rank i, and row j of the result came from rank j; zero-sized rows as well."""
    world = len(cluster.groups)
    sizes = (0, 1, 3, 1000)
    numbers = np.arange(world * world).reshape(world, world, 1).astype(dtype)

    def work(group: ProcessGroup) -> List[NDArray[Any]]:
        return [group.all_to_all(np.repeat(numbers[group.rank], size, 1)) for size in sizes]

    for rank, results in enumerate(cluster.run(work)):
        for result, size in zip(results, sizes):
            assert result.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(result, np.repeat(numbers[:, rank], size, 1))


def test_all_to_all_v_takes_parts_of_any_length(cluster: Cluster) -> None:
    """Parts are as long as their sender says, also zero; results are flat and by rank."""
    world = len(cluster.groups)

    def part(source: int, to: int) -> NDArray[Any]:
        return np.full((source * to) % 4 * 3, 10 * source + to, np.float32)

    results = cluster.run(
        lambda group: group.all_to_all_v([part(group.rank, to) for to in range(world)])
    )
    for rank, got in enumerate(results):
        assert [each.tolist() for each in got] == [
            part(source, rank).tolist() for source in range(world)
        ]


Pairs = Callable[[int], List[Tuple[int, int]]]
PERMUTATIONS: Dict[str, Pairs] = {
    "none": lambda _world: [],
    "self": lambda world: [(rank, rank) for rank in range(world)],
    "shift": lambda world: [(rank, (rank + 1) % world) for rank in range(world)],
    "half": lambda world: [(rank, rank + 1) for rank in range(0, world - 1, 2)],
    "mirror": lambda world: [(rank, world - 1 - rank) for rank in reversed(range(world))],
}


@pytest.mark.parametrize("pairs", PERMUTATIONS.values(), ids=PERMUTATIONS)
def test_ppermute_moves_arrays_along_the_pairs(cluster: Cluster, pairs: Pairs) -> None:
    """A rank that is nobody's destination gets zeros; shapes stay."""
    chosen = pairs(len(cluster.groups))
    came_from = {to: source for source, to in chosen}

    def work(group: ProcessGroup) -> List[NDArray[Any]]:
        return [
            group.ppermute(np.full(shape, group.rank + 1, np.float64), chosen)
            for shape in ((), (0,), (2, 3), (4099,))
        ]

    for rank, results in enumerate(cluster.run(work)):
        number = came_from.get(rank, -1) + 1
        for result, shape in zip(results, ((), (0,), (2, 3), (4099,))):
            assert result.shape == shape
            assert (result == number).all()


LAYOUTS: Dict[str, Callable[[], Any]] = {
    "0-d": lambda: np.array(2, np.float32),
    "empty": lambda: np.ones((3, 0, 2), np.float32),
    "strided": lambda: np.ones((4, 6), np.float32)[::2, 1::2],
    "T": lambda: np.ones((4, 6), np.float16).T,
    "big-endian": lambda: np.ones(7, ">f4"),
    "reversed": lambda: np.ones((2, 3, 4), np.float64)[..., ::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_arrays_of_any_layout_work_in_every_reduction(
    cluster: Cluster, layout: Callable[[], Any]
) -> None:
    """The caller's array keeps shape, strides and dtype and holds the result."""
    world = len(cluster.groups)
    total = sum(range(1, world + 1))

    def work(group: ProcessGroup) -> None:
        for reduction in (group.all_reduce, group.all_reduce_typed):
            array = layout()
            array *= group.rank + 1
            assert reduction(array) is array
            assert array.tolist() == (layout() * total).tolist()
        array = layout()
        array *= group.rank + 1
        assert group.reduce(array, world - 1) is array
        last = group.rank == world - 1
        assert array.tolist() == (layout() * (total if last else group.rank + 1)).tolist()
        own = group.reduce_scatter(layout())
        part = split(array.size, world)[group.rank]
        assert own.dtype == array.dtype
        assert own.tolist() == (layout() * world).ravel()[part].tolist()

    cluster.run(work)


def test_arguments_that_fit_no_group_change_nothing(cluster: Cluster) -> None:
    """They are refused before anything is sent, on the rank that made them, and it goes on."""
    world = len(cluster.groups)

    def misuse(group: ProcessGroup) -> NDArray[Any]:
        for wrong, error in (
            (lambda: group.all_to_all(np.zeros((world + 1, 2))), ValueError),
            (lambda: group.all_to_all_v([np.zeros(1)] * (world + 1)), ValueError),
            (lambda: group.ppermute(np.zeros(1), [(0, world)]), ValueError),
            (lambda: group.ppermute(np.zeros(1), [(0, 0), (0, 0)]), ValueError),
            (lambda: group.reduce(np.zeros(1), world), ValueError),
            (lambda: group.reduce_scatter(np.zeros(1, np.complex64)), TypeError),
            (lambda: group.all_reduce(np.zeros(1, np.int16), dtype="bf16"), TypeError),
            (lambda: group.all_reduce_typed(np.zeros(1), dtype="fp8"), TypeError),
        ):
            with pytest.raises(error):
                wrong()
        return group.all_reduce(np.ones(2))

    assert [each.tolist() for each in cluster.run(misuse)] == [[world] * 2] * world
