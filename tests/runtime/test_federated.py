"""federated_average: who is late is left out, and nothing of that shows later."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Iterator, List, Tuple

import numpy as np
import pytest

from rlxdeploy.runtime.errors import CollectiveMismatch, GroupError, NotSupported
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.collectives import Turnout
from tests.runtime.cluster import (
    MEMORY_MESH,
    MEMORY_STAR,
    NATIVE_MESH,
    NATIVE_STAR,
    PATIENCE_S,
    TCP_MESH,
    TCP_STAR,
    Cluster,
    Kind,
    start,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

UPSTREAM = (MEMORY_MESH, MEMORY_STAR, TCP_MESH, TCP_STAR)
NATIVE = (NATIVE_MESH, NATIVE_STAR)
WORLD = 3
# Who is not late makes it in this time on a busy machine too; who is late waits for rank 0's end.
DEADLINE_S = 2.0


@pytest.fixture(params=[*UPSTREAM, *NATIVE], ids=lambda kind: kind.name)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    whole = start(request.param, WORLD)
    yield whole
    whole.close()


@pytest.fixture(params=UPSTREAM, ids=lambda kind: kind.name)
def lenient(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Give a group whose wire does not compare what the ranks call."""
    whole = start(request.param, WORLD)
    yield whole
    whole.close()


def average(
    group: ProcessGroup, number: float, deadline: float = 5.0, size: int = 4
) -> Tuple[Turnout, List[float]]:
    """Take part with an array full of *number*; return the turnout and the array's ends."""
    array = np.full(size, number, np.float32)
    turnout = group.federated_average(array, deadline)
    return turnout, [float(array[0]), float(array[-1])]


def test_all_who_are_there_count_alike(cluster: Cluster) -> None:
    """Rank 0 learns how many took part, and every rank ends with their mean."""
    results = cluster.run(lambda group: average(group, 1.0 + group.rank))

    assert results[0] == (Turnout(3), [2.0, 2.0])
    assert results[1:] == [(Turnout(0), [2.0, 2.0])] * 2


def test_a_late_vector_counts_in_no_later_round(cluster: Cluster) -> None:
    """The straggler is named, gets the average of the others, and counts again in the next."""
    over = [threading.Event(), threading.Event()]

    def three_rounds(group: ProcessGroup) -> List[Any]:
        seen = []
        for turn in range(3):
            if turn < 2 and group.rank == 2:
                assert over[turn].wait(PATIENCE_S)
            deadline = 5.0 if turn == 2 else DEADLINE_S
            seen.append(average(group, 10.0 * turn + group.rank, deadline))
            if turn < 2 and group.rank == 0:
                over[turn].set()
        return seen

    results = cluster.run(three_rounds)

    assert [turnout for turnout, _ in results[0]] == [
        Turnout(2, (2,)),
        Turnout(2, (2,)),
        Turnout(3),
    ]
    for seen in results:
        assert [numbers for _, numbers in seen] == [[0.5, 0.5], [10.5, 10.5], [21.0, 21.0]]


def test_a_late_vector_does_not_break_the_next_all_reduce(cluster: Cluster) -> None:
    """The collective with the same tag takes its own messages and not the one that came late."""
    over = threading.Event()

    def late_then_reduce(group: ProcessGroup) -> Tuple[Any, List[float]]:
        if group.rank == 2:
            assert over.wait(PATIENCE_S)
        turnout, _ = average(group, 1.0, DEADLINE_S)
        if group.rank == 0:
            over.set()
        total = group.all_reduce(np.full(7, 1.0 + group.rank, np.float32))
        return turnout, total.tolist()

    results = cluster.run(late_then_reduce)

    assert results[0][0] == Turnout(2, (2,))
    assert [total for _, total in results] == [[6.0] * 7] * 3


def test_a_straggler_that_does_not_read_is_not_waited_for() -> None:
    """Rank 0 is done, and the late one begins only then, though the answer fits in no buffer."""
    cluster = start(TCP_STAR, WORLD, Limits(socket_buffer=4096))
    size, over = 1 << 16, threading.Event()

    def work(group: ProcessGroup) -> Any:  # noqa: ANN401 - what average returns
        if group.rank == 2:
            assert over.wait(PATIENCE_S)
        result = average(group, 1.0 + group.rank, 4 * DEADLINE_S, size)
        if group.rank == 0:
            over.set()
        group.barrier()
        return result

    results = cluster.run(work)
    cluster.close()

    assert results[0] == (Turnout(2, (2,)), [1.5, 1.5])
    assert [numbers for _, numbers in results] == [[1.5, 1.5]] * 3


def test_without_a_deadline_only_what_is_there_counts() -> None:
    """A vector that has come in whole is taken even where nothing is waited for."""
    cluster = start(TCP_MESH, 2)
    size = 20_000

    def come(group: ProcessGroup) -> Tuple[Turnout, List[float]]:
        if group.rank == 0:
            time.sleep(0.5 * DEADLINE_S)
        return average(group, 1.0 + group.rank, 0.0, size)

    results = cluster.run(come)
    cluster.close()

    assert results[0] == (Turnout(2), [1.5, 1.5])


def test_a_vector_of_another_length_is_left_out(lenient: Cluster) -> None:
    """Its rank keeps its own, as the answer does not fit it."""
    results = lenient.run(
        lambda group: average(group, 1.0 + group.rank, size=5 if group.rank == 1 else 4)
    )

    assert results[0] == (Turnout(2, (1,)), [2.0, 2.0])
    assert results[1] == (Turnout(0), [2.0, 2.0])


@pytest.mark.parametrize("kind", NATIVE, ids=lambda kind: kind.name)
def test_lengths_are_compared_on_the_native_wire(kind: Kind) -> None:
    """There a vector of another length is another call, which all are told."""
    cluster = start(kind, WORLD)
    outcomes = cluster.outcomes(lambda group: average(group, 1.0, size=5 if group.rank == 1 else 4))
    cluster.close()

    assert all(isinstance(each, CollectiveMismatch) for each in outcomes), outcomes
    assert outcomes[0].calls.keys() == {0, 1}


def test_half_a_number_is_an_error_that_names_the_rank(lenient: Cluster) -> None:
    """What is no row of elements is no vector, and everybody learns that the group is over."""

    def odd(group: ProcessGroup) -> None:
        if group.rank == 1:
            group.federated_average(np.zeros(3, np.float16), 5.0, 5.0)
        else:
            group.federated_average(np.zeros(3, np.float32), 5.0, 5.0)

    outcomes = lenient.outcomes(odd)

    assert "rank 1 sent 6 bytes" in str(outcomes[0])
    assert all(isinstance(each, GroupError) for each in outcomes)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8"])
def test_floats_of_every_size_are_averaged(cluster: Cluster, dtype: str) -> None:
    """The mean is taken in the array's own precision; integers have none."""

    def work(group: ProcessGroup) -> NDArray[Any]:
        with pytest.raises(NotSupported, match="no exact mean"):
            group.federated_average(np.zeros(1, np.int8), 1.0)
        array: NDArray[Any] = np.full((2, 2), group.rank, dtype)
        group.federated_average(array, 5.0)
        return array

    for array in cluster.run(work):
        assert array.tolist() == [[1.0, 1.0]] * 2


@pytest.mark.parametrize("kind", [TCP_MESH, TCP_STAR], ids=lambda kind: kind.name)
def test_a_group_of_one_averages_itself(kind: Kind) -> None:
    """Nobody else is waited for."""
    cluster = start(kind, 1)

    assert cluster.run(lambda group: average(group, 3.0, 0.0)) == [(Turnout(1), [3.0, 3.0])]
    cluster.close()
