"""The symmetric heap: what one rank puts another finds, and nobody reaches past its end."""

from __future__ import annotations

from typing import Callable, Iterator, List

import numpy as np
import pytest

from rlxdeploy.runtime.errors import NoLink, PeerLost, WireError
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.collectives import Turnout
from rlxdeploy.runtime.node import Node
from tests.runtime.cluster import (
    MEMORY_MESH,
    NATIVE_MESH,
    PATIENCE_S,
    TCP_MESH,
    TCP_STAR,
    Cluster,
    Kind,
    environment,
    fresh_host,
    in_threads,
    outcome,
    peers_on,
    start,
)

MIB = 1 << 20


@pytest.fixture(params=[MEMORY_MESH, TCP_MESH, NATIVE_MESH], ids=lambda kind: kind.name)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    whole = start(request.param, 3, HEAP_MB="1")
    yield whole
    whole.close()


def test_every_rank_reads_what_every_rank_put(cluster: Cluster) -> None:
    """Each puts into a place of its own in every heap, itself included; the rest stays zero."""

    def exchange(group: ProcessGroup) -> List[bytes]:
        for to in range(group.world):
            group.put(to, 4 * group.rank, np.full(2, group.rank * 16 + to, "<u2"))
        # Links differ: only the answer to a get tells that what went before has arrived.
        for to in range(group.world):
            group.get(to, 0, 0)
        group.barrier()
        read = [group.get(source, 0, 14) for source in range(group.world)]
        group.barrier()
        return read

    for read in cluster.run(exchange):
        for source, found in enumerate(read):
            numbers = [rank * 16 + source for rank in range(3) for _ in range(2)]
            assert found == np.array([*numbers, 0], "<u2").tobytes()


def test_a_heap_has_an_end(cluster: Cluster) -> None:
    """What is not inside is refused before anything is sent, and the group goes on."""

    def reach(group: ProcessGroup) -> bytes:
        for wrong in (
            lambda: group.put(1, MIB - 1, b"ab"),
            lambda: group.get(1, MIB, 1),
            lambda: group.get(group.rank, -1, 1),
            lambda: group.get(1, 0, -1),
            lambda: group.put(3, 0, b"a"),
        ):
            with pytest.raises(ValueError, match=r"heap of 1048576|ranks are|-1 bytes"):
                wrong()
        assert group.get(1, MIB, 0) == b""
        group.barrier()
        return group.get(group.rank, MIB - 2, 2)

    assert cluster.run(reach) == [b"\0\0"] * 3


def test_a_rank_with_a_smaller_heap_is_named() -> None:
    """It answers with nothing, which says that the heaps are not of one size."""
    peers = peers_on(fresh_host(), 2)
    nodes = [
        Node.from_env(environment(rank, peers, HEAP_MB=str(2 - rank))).timeout(5.0)
        for rank in range(2)
    ]
    cluster = Cluster(in_threads([node.connect for node in nodes]))

    def read(group: ProcessGroup) -> bytes:
        return group.get(1, MIB, 8) if group.rank == 0 else group.recv_bytes(0, 1)

    first, _ = cluster.outcomes(read)
    assert isinstance(first, WireError)
    assert "its heap has no 8 bytes at offset 1048576" in str(first)
    cluster.close()


def test_workers_of_a_star_have_no_way_to_each_other() -> None:
    """Between two ranks without a link nothing can be put; rank 0 reaches all."""
    cluster = start(TCP_STAR, 3, HEAP_MB="1")

    def reach(group: ProcessGroup) -> object:
        if group.rank == 0:
            group.put(2, 0, b"x")
            return group.get(2, 0, 1)
        if group.rank == 1:
            return outcome(lambda: group.put(2, 0, b"x"))()
        return group.recv_bytes(0, 1, 2.0)

    zero, one, _ = cluster.outcomes(reach)
    assert zero == b"x"
    assert isinstance(one, NoLink)
    cluster.close()


def watches(group: ProcessGroup) -> object:
    """Let time pass until rank 1 is gone."""
    return outcome(lambda: group.watch(PATIENCE_S / 2))()


def averages(group: ProcessGroup) -> object:
    return group.federated_average(np.ones(2, np.float32), PATIENCE_S / 2)


@pytest.mark.parametrize("kind", [TCP_MESH, NATIVE_MESH], ids=lambda kind: kind.name)
@pytest.mark.parametrize(("idles", "seen"), [(watches, PeerLost), (averages, Turnout(2))])
def test_a_get_of_any_size_is_answered_in_every_call(
    kind: Kind, idles: Callable[[ProcessGroup], object], seen: object
) -> None:
    """Also in those that send nothing themselves: what the kernel does not take at once follows."""
    cluster = start(kind, 2, Limits(socket_buffer=4096), HEAP_MB="1")

    def fetches(group: ProcessGroup) -> object:
        whole = group.get(0, 0, MIB)
        if idles is averages:
            averages(group)
        group.close()
        return len(whole)

    zero, one = cluster.run(lambda group: fetches(group) if group.rank else idles(group))
    cluster.close()
    assert one == MIB
    assert zero == seen if isinstance(seen, Turnout) else isinstance(zero, PeerLost)
