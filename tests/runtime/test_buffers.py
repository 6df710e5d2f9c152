"""Progress never depends on the size of the kernel's buffers: every call with the smallest ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Dict, Tuple

import numpy as np
import pytest

from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.ring import split
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.limits import Limits
from tests.runtime.cluster import NATIVE_MESH, NATIVE_STAR, TCP_MESH, TCP_STAR, Kind, start

if TYPE_CHECKING:
    from numpy.typing import NDArray

TINY = Limits(socket_buffer=4096)
# Elements: many times what the kernel takes; on the native wire more than a chunk of a schedule.
SIZES = {"rlx": 30_000, "native": 90_000}


def row(size: int) -> NDArray[Any]:
    """Return numbers whose sums and means over few ranks are exact."""
    return np.arange(size, dtype=np.float32) % 1000


def crossed(group: ProcessGroup, mine: NDArray[Any]) -> NDArray[Any]:
    """Send *mine* to rank 0, or to rank 1 as rank 0, before anybody receives; return what came."""
    came = np.empty_like(mine)
    if group.rank:
        group.send(0, 7, mine)
        group.recv(0, 7, came)
    else:
        for rank in range(1, group.world):
            group.send(rank, 7, mine)
        for rank in range(1, group.world):
            group.recv(rank, 7, came)
    return came


def put_and_got(group: ProcessGroup, mine: NDArray[Any]) -> bytes:
    """Put *mine* into a place of its own in another's heap while others do, and get it back."""
    other, place = (0 if group.rank else 1), group.rank * mine.nbytes
    group.put(other, place, mine)
    found = group.get(other, place, mine.nbytes)
    group.barrier()
    return found


def averaged(group: ProcessGroup, mine: NDArray[Any]) -> Tuple[int, NDArray[Any]]:
    turnout = group.federated_average(mine, 30.0)
    return turnout.present, mine


def spread(group: ProcessGroup, mine: NDArray[Any]) -> NDArray[Any]:
    group.broadcast(mine, group.world - 1)
    return mine


def everything(group: ProcessGroup, size: int) -> Dict[str, Any]:
    """Make every call there is with *size* elements, one after the other; return what came."""
    world, rank = group.world, group.rank
    mine = row(size) + rank
    return {
        "all_reduce": group.all_reduce(mine.copy(), ReduceKind.MAX),
        "mean": group.all_reduce_typed(mine.astype(np.float64), ReduceKind.MEAN),
        "exact": group.all_reduce(mine.copy(), deterministic=True),
        "broadcast": spread(group, mine.copy()),
        "reduce": group.reduce(mine.copy(), world - 1, ReduceKind.MIN),
        "scatter": group.reduce_scatter(mine, ReduceKind.MAX),
        "gather": group.all_gather(mine),
        "to_all": group.all_to_all(np.stack([mine + to for to in range(world)])),
        "to_all_v": group.all_to_all_v([mine[: size // (to + 1)] for to in range(world)]),
        "permuted": group.ppermute(mine, [(each, (each + 1) % world) for each in range(world)]),
        "averaged": averaged(group, mine.copy()),
        "heap": put_and_got(group, mine),
        "crossed": crossed(group, mine),
    }


@pytest.mark.parametrize("world", range(2, 6))
@pytest.mark.parametrize(
    "kind", [TCP_MESH, TCP_STAR, NATIVE_MESH, NATIVE_STAR], ids=lambda kind: kind.name
)
def test_no_call_depends_on_room_in_the_kernel(kind: Kind, world: int) -> None:
    """With 4 KiB of kernel buffer on either side every call with big arrays ends, and is right."""
    size = SIZES[kind.wire]
    cluster = start(kind, world, TINY, HEAP_MB="4")
    results = cluster.run(partial(everything, size=size))
    cluster.close()

    array, last = row(size), row(size) + world - 1
    middle = array + (world - 1) / 2
    for rank, got in enumerate(results):
        expected = {
            "all_reduce": last,
            "mean": middle,
            "exact": middle * world,
            "broadcast": last,
            "reduce": array if rank == world - 1 else array + rank,
            "scatter": last[split(size, world)[rank]],
            "gather": [array + each for each in range(world)],
            "to_all": [array + each + rank for each in range(world)],
            "permuted": array + (rank - 1) % world,
            "crossed": array if rank else last,
        }
        for name, numbers in expected.items():
            np.testing.assert_array_equal(got[name], numbers, err_msg=name)
        for source, part in enumerate(got["to_all_v"]):
            np.testing.assert_array_equal(part, array[: size // (rank + 1)] + source)
        present, mean = got["averaged"]
        assert present == (0 if rank else world)
        np.testing.assert_allclose(mean, middle, rtol=1e-6)
        assert got["heap"] == (array + rank).tobytes()
