"""One conformance suite for every kind of links: numpy says what the results must be."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List

import numpy as np
import pytest

from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.group import ProcessGroup
from tests.runtime.cluster import KINDS, Cluster, start

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZES = (0, 1, 2, 5, 1000, 70_001)
NUMPY: Dict[ReduceKind, Callable[..., Any]] = {
    ReduceKind.SUM: np.sum,
    ReduceKind.MEAN: np.mean,
    ReduceKind.MAX: np.max,
    ReduceKind.MIN: np.min,
}


@pytest.fixture(
    scope="module",
    params=[(kind, world) for kind in KINDS for world in (1, 2, 3, 5)],
    ids=lambda param: f"{param[0].name}-{param[1]}",
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    kind, world = request.param
    whole = start(kind, world)
    yield whole
    whole.close()


def filled(rank: int, size: int, dtype: str = "<f4") -> NDArray[Any]:
    """Return what *rank* puts in, as different from the others' as can be."""
    drawn = np.random.default_rng(rank * 1000 + size).normal(size=size)
    given: NDArray[Any] = drawn.astype(dtype)
    return given


def inputs(world: int, size: int, dtype: str = "<f4") -> NDArray[Any]:
    return np.stack([filled(rank, size, dtype) for rank in range(world)])


def reduced(size: int, dtype: str, kind: ReduceKind, group: ProcessGroup) -> NDArray[Any]:
    return group.all_reduce(filled(group.rank, size, dtype), kind)


def gathered(size: int, dtype: str, group: ProcessGroup) -> NDArray[Any]:
    return group.all_gather(filled(group.rank, size, dtype))


def same_bits(results: List[Any]) -> bool:
    return all(result.tobytes() == results[0].tobytes() for result in results)


@pytest.mark.parametrize("kind", ReduceKind, ids=lambda kind: kind.value)
@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_all_reduce_gives_numpys_result_and_the_same_bits_everywhere(
    cluster: Cluster, kind: ReduceKind, dtype: str
) -> None:
    """For every size, kind and precision each rank ends with the reduction of all inputs."""
    for size in SIZES:
        results = cluster.run(partial(reduced, size, dtype, kind))
        expected = NUMPY[kind](inputs(len(results), size, dtype).astype("<f8"), axis=0)

        assert same_bits(results)
        np.testing.assert_allclose(results[0], expected, rtol=1e-5, atol=1e-5)


def test_deterministic_mode_rounds_once(cluster: Cluster) -> None:
    """Summed in float64 and rounded once, the float32 result is the float64 sum's own."""
    results = cluster.run(
        lambda group: group.all_reduce(filled(group.rank, 5000), deterministic=True)
    )
    expected = inputs(len(results), 5000).astype("<f8").sum(axis=0).astype("<f4")

    assert same_bits(results)
    np.testing.assert_allclose(results[0], expected, rtol=2e-7)


def test_broadcast_spreads_the_roots_array_from_every_root(cluster: Cluster) -> None:
    """Whichever rank is the root, all end with its array, and it keeps its own."""

    def spread(group: ProcessGroup) -> List[Any]:
        given: List[NDArray[Any]] = []
        for root in range(group.world):
            for size in SIZES:
                array = filled(group.rank, size)
                group.broadcast(array, root)
                given.append(array)
        return given

    results = cluster.run(spread)
    expected = [filled(root, size) for root in range(len(results)) for size in SIZES]

    for given in results:
        assert [array.tobytes() for array in given] == [array.tobytes() for array in expected]


@pytest.mark.parametrize("dtype", ["<f4", "u1", "<i8", "?", "<c16"])
def test_all_gather_stacks_by_rank(cluster: Cluster, dtype: str) -> None:
    """Every rank ends with every rank's array, of any dtype, in rank order."""
    for size in SIZES:
        results = cluster.run(partial(gathered, size, dtype))
        expected = inputs(len(results), size, dtype)

        assert same_bits([*results, expected])
        assert results[0].shape == expected.shape


def test_nobody_passes_a_barrier_before_all_have_come(cluster: Cluster) -> None:
    """What a rank did before the barrier, every rank sees after it."""
    came: List[int] = []

    def meet(group: ProcessGroup) -> int:
        came.append(group.rank)
        group.barrier()
        return len(came)

    results = cluster.run(meet)

    assert results == [len(results)] * len(results)


LAYOUTS: List[Callable[[], Any]] = [
    lambda: np.ones((), np.float32),
    lambda: np.ones((3, 0, 2), np.float32),
    lambda: np.ones((4, 6), np.float32)[::2, 1::2],
    lambda: np.ones((4, 6), np.float32).T,
    lambda: np.ones(7, ">f4"),
    lambda: np.ones((2, 3, 4), np.float64)[..., ::-1],
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=["0-d", "empty", "strided", "T", "big", "reversed"])
def test_arrays_of_any_layout_are_reduced_in_place(
    cluster: Cluster, layout: Callable[[], Any]
) -> None:
    """The caller's own array holds the result, and keeps shape, strides and dtype."""

    def reduce(group: ProcessGroup) -> NDArray[Any]:
        array = layout()
        array *= group.rank + 1
        before = (array.shape, array.strides, array.dtype)
        assert group.all_reduce(array) is array
        group.broadcast(array, group.world - 1)
        assert before == (array.shape, array.strides, array.dtype)
        return array

    results = cluster.run(reduce)
    total = sum(range(1, len(results) + 1))

    for array in results:
        assert array.tolist() == (layout() * total).tolist()


def test_all_gather_fills_the_array_it_is_given(cluster: Cluster) -> None:
    """With `out` nothing is allocated for the result, whatever its strides."""
    world = len(cluster.groups)

    def gather(group: ProcessGroup) -> NDArray[Any]:
        out = np.zeros((world, 6), np.float32)[:, ::2]
        assert group.all_gather(np.full(3, group.rank, np.float32), out) is out
        return out

    for result in cluster.run(gather):
        assert result.tolist() == [[rank] * 3 for rank in range(world)]


def test_arguments_no_group_can_carry_out_change_nothing(cluster: Cluster) -> None:
    """A wrong argument is refused by its rank alone, and the group goes on."""

    def misuse(group: ProcessGroup) -> NDArray[Any]:
        for wrong, error in (
            (lambda: group.all_reduce(np.zeros(3, np.complex64)), TypeError),
            (lambda: group.all_reduce([1.0]), TypeError),  # type: ignore[arg-type] # the claim
            (lambda: group.all_reduce(np.frombuffer(b"1234", "<f4")), ValueError),
            (lambda: group.broadcast(np.zeros(1), group.world), ValueError),
            (lambda: group.broadcast(np.array([{}])), TypeError),
            (lambda: group.all_gather(np.zeros(2), np.zeros((9, 9))), ValueError),
            (lambda: group.send(0, 0xFFF00000, np.zeros(1)), ValueError),
            (lambda: group.send(-1, 0, np.zeros(1)), ValueError),
            (lambda: group.recv_bytes(group.rank, 5), ValueError),
        ):
            with pytest.raises(error):
                wrong()
        return group.all_reduce(np.ones(2))

    world = len(cluster.groups)

    assert [result.tolist() for result in cluster.run(misuse)] == [[world] * 2] * world
