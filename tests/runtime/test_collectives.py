"""Every collective that moves arrays over every kind of links: numpy says what must come out."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Tuple

import numpy as np
import pytest

from rlxdeploy.runtime.group import ProcessGroup
from tests.runtime.cluster import Cluster

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Nothing, little, and more than a small native message.
SIZES = (0, 1, 5, 4099)
# More than the kernel takes at once.
LONG = 70_001


def filled(rank: int, size: int, dtype: str = "<f4") -> NDArray[Any]:
    """Return what *rank* puts in, as different from the others' as can be."""
    drawn = np.random.default_rng(rank * 1000 + size).normal(size=size)
    given: NDArray[Any] = drawn.astype(dtype)
    return given


def test_broadcast_spreads_the_roots_array_from_every_root(cluster: Cluster) -> None:
    """Whichever rank is the root, as any kind of integer, all end with its array, which stays."""
    world = len(cluster.groups)
    cases = [(0, size) for size in SIZES] + [(root, LONG) for root in range(world)]

    def spread(group: ProcessGroup) -> List[bytes]:
        given = []
        for root, size in cases:
            array = filled(group.rank, size)
            group.broadcast(array, np.uint8(root))  # type: ignore[arg-type] # the claim
            given.append(array.tobytes())
        return given

    expected = [filled(root, size).tobytes() for root, size in cases]
    assert cluster.run(spread) == [expected] * world


def test_all_gather_stacks_by_rank(cluster: Cluster) -> None:
    """Every rank ends with every rank's array, of any dtype, in rank order."""
    world = len(cluster.groups)
    cases = [("<f4", LONG), *itertools.product(["<f4", "u1", "<i8", "?", "<c16"], SIZES)]

    def gather(group: ProcessGroup) -> List[NDArray[Any]]:
        return [group.all_gather(filled(group.rank, size, dtype)) for dtype, size in cases]

    expected = [np.stack([filled(rank, n, dtype) for rank in range(world)]) for dtype, n in cases]
    for results in cluster.run(gather):
        for got, right, case in zip(results, expected, cases):
            assert got.shape == right.shape, case
            assert got.tobytes() == right.tobytes(), case


def test_nobody_passes_a_barrier_before_all_have_come(cluster: Cluster) -> None:
    """What a rank did before the barrier, every rank sees after it."""
    came: List[int] = []

    def meet(group: ProcessGroup) -> int:
        came.append(group.rank)
        group.barrier()
        return len(came)

    results = cluster.run(meet)

    assert results == [len(results)] * len(results)


def test_all_to_all_transposes_ranks_and_rows(cluster: Cluster) -> None:
    """Row i goes to rank i, and row j of the result came from rank j; zero-sized rows as well."""
    world = len(cluster.groups)
    numbers = np.arange(world * world).reshape(world, world, 1)
    cases = list(itertools.product(["<f4", "u1", "<i8", ">f8"], (0, 1, 3, 1000)))

    def rows(all_of_rank: NDArray[Any], dtype: str, size: int) -> NDArray[Any]:
        return np.repeat(all_of_rank.astype(dtype), size, 1)

    def work(group: ProcessGroup) -> List[NDArray[Any]]:
        return [group.all_to_all(rows(numbers[group.rank], *case)) for case in cases]

    for rank, results in enumerate(cluster.run(work)):
        for result, case in zip(results, cases):
            assert result.dtype == np.dtype(case[0])
            np.testing.assert_array_equal(result, rows(numbers[:, rank], *case), str(case))


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


def test_ppermute_moves_arrays_along_the_pairs(cluster: Cluster) -> None:
    """A rank that is nobody's destination gets zeros; shapes stay."""
    world = len(cluster.groups)
    cases = list(itertools.product(PERMUTATIONS, [(), (0,), (2, 3), (4099,)]))

    def work(group: ProcessGroup) -> List[NDArray[Any]]:
        return [
            group.ppermute(np.full(shape, group.rank + 1, np.float64), PERMUTATIONS[name](world))
            for name, shape in cases
        ]

    for rank, results in enumerate(cluster.run(work)):
        for result, (name, shape) in zip(results, cases):
            came_from = {to: source for source, to in PERMUTATIONS[name](world)}
            assert result.shape == shape, name
            assert (result == came_from.get(rank, -1) + 1).all(), name


def test_all_gather_fills_the_array_it_is_given(cluster: Cluster) -> None:
    """With `out` nothing is allocated for the result, whatever its strides."""
    world = len(cluster.groups)

    def gather(group: ProcessGroup) -> NDArray[Any]:
        out = np.zeros((world, 6), np.float32)[:, ::2]
        assert group.all_gather(np.full(3, group.rank, np.float32), out) is out
        return out

    for result in cluster.run(gather):
        assert result.tolist() == [[rank] * 3 for rank in range(world)]


LAYOUTS: Dict[str, Callable[[], NDArray[Any]]] = {
    "0-d": lambda: np.array(2, np.float32),
    "empty": lambda: np.ones((3, 0, 2), np.float64),
    "strided": lambda: np.arange(24, dtype=np.float32).reshape(4, 6)[::2, 1::2],
    "T": lambda: np.arange(12, dtype=np.float16).reshape(3, 4).T,
    "big-endian": lambda: np.arange(7, dtype=">f4"),
    "reversed": lambda: np.arange(6, dtype=np.float64)[::-1],
}


def brought(name: str, rank: int) -> NDArray[Any]:
    """Return what *rank* brings in a layout."""
    array = LAYOUTS[name]()
    array += rank
    return array


def test_arrays_of_any_layout_are_moved(cluster: Cluster) -> None:
    """0-d, zero-sized, strided, big-endian: what arrives has the same elements in their order."""
    world = len(cluster.groups)
    turn = [(rank, (rank + 1) % world) for rank in range(world)]

    def move_all(group: ProcessGroup, name: str) -> Dict[str, Any]:
        mine, averaged, received = (brought(name, group.rank) for _ in range(3))
        # In a star only rank 0 has a link to every other.
        if group.rank in {0, world - 1}:
            group.send(world - 1 - group.rank, 5, mine)
            group.recv(world - 1 - group.rank, 5, received)
        group.federated_average(averaged, 30.0)
        rows = np.moveaxis(np.stack([mine] * world, -1), -1, 0)
        return {
            "received": received.tolist(),
            "gathered": group.all_gather(mine).tolist(),
            "exchanged": group.all_to_all(rows).tolist(),
            "parts": [part.tolist() for part in group.all_to_all_v([mine] * world)],
            "permuted": group.ppermute(mine, turn).tolist(),
            "averaged": averaged,
        }

    everywhere = cluster.run(lambda group: {name: move_all(group, name) for name in LAYOUTS})
    for name in LAYOUTS:
        arrays = [brought(name, rank) for rank in range(world)]
        lists = [array.tolist() for array in arrays]
        mean = np.mean([array.astype(np.float64) for array in arrays], axis=0)
        for rank, got in enumerate(results[name] for results in everywhere):
            ends = rank in {0, world - 1}
            np.testing.assert_allclose(got.pop("averaged"), mean, rtol=1e-3, err_msg=name)
            assert got == {
                "received": lists[world - 1 - rank if ends else rank],
                "gathered": lists,
                "exchanged": lists,
                "parts": [array.ravel().tolist() for array in arrays],
                "permuted": lists[rank - 1],
            }, name


def test_arguments_no_group_can_carry_out_change_nothing(cluster: Cluster) -> None:
    """A wrong argument is refused by its rank alone, and the group goes on."""
    world = len(cluster.groups)

    def misuse(group: ProcessGroup) -> NDArray[Any]:
        for wrong, error in (
            (lambda: group.all_to_all(np.zeros((world + 1, 2))), ValueError),
            (lambda: group.all_to_all_v([np.zeros(1)] * (world + 1)), ValueError),
            (lambda: group.ppermute(np.zeros(1), [(0, world)]), ValueError),
            (lambda: group.ppermute(np.zeros(1), [(0, 0), (0, 0)]), ValueError),
            (lambda: group.broadcast(np.zeros(1), group.world), ValueError),
            (lambda: group.broadcast(np.array([{}])), TypeError),
            (lambda: group.all_gather(np.zeros(2), np.zeros((9, 9))), ValueError),
            (lambda: group.send(0, 0xFFF00000, np.zeros(1)), ValueError),
            (lambda: group.send(-1, 0, np.zeros(1)), ValueError),
            (lambda: group.recv_bytes(group.rank, 5), ValueError),
            (lambda: group.broadcast(np.zeros(1), 0.0), TypeError),  # type: ignore[arg-type] # the claim
            (lambda: group.send(0, 1.5, np.zeros(1)), TypeError),  # type: ignore[arg-type] # the claim
            (lambda: group.put(0, 1.0, b"x"), TypeError),  # type: ignore[arg-type] # the claim
        ):
            with pytest.raises(error):
                wrong()
        return group.all_reduce(np.ones(2))

    assert [result.tolist() for result in cluster.run(misuse)] == [[world] * 2] * world
