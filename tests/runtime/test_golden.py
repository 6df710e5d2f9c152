"""Our ranks against scripted peers that send what the public transport sent, byte for byte."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

import numpy as np
import pytest

from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.node import Node
from rlxdeploy.runtime.roster import awaits, dials
from rlxdeploy.runtime.wire.frame import hello
from tests.runtime.cluster import PATIENCE_S, dial, environment, fresh_host, peers_on
from tests.runtime.golden import PLAYABLE, VECTORS, Vector

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DTYPES = {"f64": "<f8"}


def carry_out(group: ProcessGroup, op: Dict[str, Any]) -> Optional[bytes]:
    """Do what the captured program did; return its result."""
    name, data = op["op"], bytearray.fromhex(op.get("hex", ""))
    if name == "barrier":
        group.barrier()
        return None
    if name == "send":
        group.send_bytes(op["to"], op["tag"], data)
        return None
    if name == "recv":
        return group.recv_bytes(op["from"], op["tag"])
    array: NDArray[Any] = np.frombuffer(data, _DTYPES.get(op.get("dtype", ""), "<f4"))
    if name == "all_gather":
        return bytes(group.all_gather(array).tobytes())
    if name == "broadcast":
        group.broadcast(array, op["root"])
        return bytes(data)
    assert name in {"all_reduce_f32", "all_reduce_typed"}
    group.all_reduce(array, ReduceKind(op["kind"]))
    return bytes(data)


class Script:
    """The other ranks of a vector: raw sockets that say what was captured."""

    def __init__(self, vector: Vector, ours: int) -> None:
        self.vector, self.ours, self.star = vector, ours, vector.topology == "star"
        self.peers = peers_on(fresh_host(), vector.world)
        self._listeners = {
            rank: socket.create_server(self._address(rank))
            for rank in dials(ours, vector.world, star=self.star)
        }

    def _address(self, rank: int) -> Tuple[str, int]:
        host, _, port = self.peers[rank].rpartition(":")
        return host, int(port)

    def connect(self) -> Dict[int, socket.socket]:
        """Return the connection to each other rank, HELLO said or heard."""
        links: Dict[int, socket.socket] = {}
        for rank in awaits(self.ours, self.vector.world, star=self.star):
            links[rank] = dial(*self._address(self.ours))
            links[rank].sendall(hello(rank))
        for rank, listener in self._listeners.items():
            listener.settimeout(PATIENCE_S)
            links[rank], _ = listener.accept()
            listener.close()
            links[rank].settimeout(PATIENCE_S)
            assert exactly(links[rank], 13) == hello(self.ours)
        return links


def exactly(sock: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        more = sock.recv(count - len(got))
        assert more, f"closed after {got.hex()}"
        got += more
    return got


@pytest.mark.parametrize("ours", range(3))
@pytest.mark.parametrize("vector", PLAYABLE.values(), ids=PLAYABLE)
def test_a_rank_of_ours_fits_in_at_every_position(vector: Vector, ours: int) -> None:
    """It sends exactly the captured bytes, nothing more, and ends with the captured results."""
    ours %= vector.world
    script = Script(vector, ours)
    results: List[Optional[bytes]] = []
    more = {"RLX_DETERMINISTIC_REDUCE": "1"} if vector.deterministic else {}
    node = Node.from_env(environment(ours, script.peers, vector.topology, **more))

    def be_rank() -> None:
        with node.timeout(PATIENCE_S).connect() as group:
            results.extend(carry_out(group, op) for op in vector.ranks[ours])

    rank = threading.Thread(target=be_rank)
    rank.start()
    links = script.connect()
    for other, link in links.items():
        link.sendall(vector.stream(other, ours))
    for other, link in links.items():
        expected = vector.stream(ours, other)
        assert exactly(link, len(expected)) == expected
    rank.join(PATIENCE_S)

    assert [link.recv(1) for link in links.values()] == [b""] * len(links)
    for link in links.values():
        link.close()
    captured = [op.get("result") for op in vector.ranks[ours]]
    assert [None if each is None else each.hex() for each in results] == captured


@pytest.mark.parametrize("name", ["hello", "hello_star"])
def test_hello_is_said_by_whom_it_was_captured_from(name: str) -> None:
    """Lower ranks dial higher ones in a mesh, workers dial rank 0 in a star, and say HELLO."""
    vector = VECTORS[name]
    said = [
        (rank, to, hello(rank))
        for rank in range(vector.world)
        for to in dials(rank, vector.world, star=vector.topology == "star")
    ]

    assert sorted(said) == sorted(vector.frames)
