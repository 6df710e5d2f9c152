"""Our ranks against scripted peers that send what the public transport sent, byte for byte."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Tuple, TypeVar

import numpy as np
import pytest

from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.node import Node
from rlxdeploy.runtime.roster import awaits, dials
from rlxdeploy.runtime.wire.frame import Frame, Kind, encode, hello
from tests.runtime.cluster import PATIENCE_S, dial, environment, fresh_host, peers_on
from tests.runtime.golden import PLAYABLE, VECTORS, Vector

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
DTYPES = {"f64": "<f8", "f16": "<f2", "bf16": "<u2", "i8": "i1", "u8": "u1"}


def barrier(group: ProcessGroup, _op: Dict[str, Any]) -> None:
    group.barrier()


def send(group: ProcessGroup, op: Dict[str, Any]) -> None:
    group.send_bytes(op["to"], op["tag"], bytes.fromhex(op["hex"]))


def recv(group: ProcessGroup, op: Dict[str, Any]) -> bytes:
    return group.recv_bytes(op["from"], op["tag"])


def put(group: ProcessGroup, op: Dict[str, Any]) -> None:
    group.put(op["rank"], op["offset"], bytes.fromhex(op["hex"]))


def get(group: ProcessGroup, op: Dict[str, Any]) -> bytes:
    return group.get(op["rank"], op["offset"], op["len"])


def array_of(op: Dict[str, Any]) -> NDArray[Any]:
    dtype = DTYPES.get(op.get("dtype", ""), "<f4")
    return np.frombuffer(bytearray.fromhex(op["hex"]), dtype)


def all_reduce_f32(group: ProcessGroup, op: Dict[str, Any]) -> bytes:
    return group.all_reduce(array_of(op), ReduceKind(op["kind"])).tobytes()


def all_reduce_typed(group: ProcessGroup, op: Dict[str, Any]) -> bytes:
    half = op["dtype"] if op["dtype"] == "bf16" else None
    return group.all_reduce_typed(array_of(op), ReduceKind(op["kind"]), dtype=half).tobytes()


def all_gather(group: ProcessGroup, op: Dict[str, Any]) -> bytes:
    return group.all_gather(array_of(op)).tobytes()


def broadcast(group: ProcessGroup, op: Dict[str, Any]) -> bytes:
    array = array_of(op)
    group.broadcast(array, op["root"])
    return array.tobytes()


def reduce(group: ProcessGroup, op: Dict[str, Any]) -> bytes:
    return group.reduce(array_of(op), op["root"], ReduceKind(op["kind"])).tobytes()


def all_to_all(group: ProcessGroup, op: Dict[str, Any]) -> bytes:
    return group.all_to_all(array_of(op).reshape(group.world, -1)).tobytes()


def all_to_all_v(group: ProcessGroup, op: Dict[str, Any]) -> bytes:
    parts = np.split(array_of(op), np.cumsum(op["counts"])[:-1])
    got = group.all_to_all_v(parts)
    assert [part.size for part in got] == op["result_counts"]
    return np.concatenate(got).tobytes()


def ppermute(group: ProcessGroup, op: Dict[str, Any]) -> bytes:
    return group.ppermute(array_of(op), op["perm"]).tobytes()


def federated_average(group: ProcessGroup, op: Dict[str, Any]) -> bytes:
    array = array_of(op)
    turnout = group.federated_average(array, op["deadline_ms"] / 1000)
    assert turnout == (op["result_present"], ())
    return array.tobytes()


Deed = Callable[[ProcessGroup, Dict[str, Any]], Optional[bytes]]
DEEDS: Dict[str, Deed] = {
    deed.__name__: deed
    for deed in (
        *(barrier, send, recv, put, get, all_reduce_f32, all_reduce_typed, all_gather, broadcast),
        *(reduce, all_to_all, all_to_all_v, ppermute, federated_average),
    )
}


class Script:
    """The other ranks of a vector: raw sockets that say what was captured."""

    def __init__(self, vector: Vector, ours: int) -> None:
        self.vector, self.ours, self.star = vector, ours, vector.topology == "star"
        self.peers = peers_on(fresh_host(), vector.world)
        self.links: Dict[int, socket.socket] = {}
        self._listeners = {
            rank: socket.create_server(self._address(rank))
            for rank in dials(ours, vector.world, star=self.star)
        }

    def _address(self, rank: int) -> Tuple[str, int]:
        host, _, port = self.peers[rank].rpartition(":")
        return host, int(port)

    def connect(self) -> None:
        """Connect to our rank or let it connect, HELLO said or heard."""
        for rank in awaits(self.ours, self.vector.world, star=self.star):
            self.links[rank] = dial(*self._address(self.ours))
            self.links[rank].sendall(hello(rank))
        for rank, listener in self._listeners.items():
            listener.settimeout(PATIENCE_S)
            self.links[rank], _ = listener.accept()
            listener.close()
            self.links[rank].settimeout(PATIENCE_S)
            assert exactly(self.links[rank], 13) == hello(self.ours)
        for link in self.links.values():
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def play(self, manner: Manner) -> None:
        """Say all that was captured and see that our rank does; in turn, or all at once."""
        if self.vector.in_turn:
            for source, to, frame in self.vector.frames:
                if source == self.ours:
                    assert exactly(self.links[to], len(frame)) == frame
                else:
                    say(self.links[source], frame, manner.piece)
        for other, link in self.links.items():
            if not self.vector.in_turn:
                say(link, self.vector.stream(other, self.ours), manner.piece)
            link.sendall(manner.trailing(other))
        for other, link in self.links.items():
            if not self.vector.in_turn:
                expected = self.vector.stream(self.ours, other)
                assert exactly(link, len(expected)) == expected

    def see_the_end(self) -> None:
        """See that our rank says nothing more and closes."""
        for link in self.links.values():
            # A reset: it closed while something that it had no use for was under way to it.
            with link, contextlib.suppress(ConnectionResetError):
                assert link.recv(1) == b""


class Manner(NamedTuple):
    """How a script speaks: *piece* bytes at a time, and perhaps more than was captured."""

    piece: int
    more: bool = False

    def trailing(self, rank: int) -> bytes:
        if not self.more:
            return b""
        return encode(Frame(Kind.SEND, rank, 77, b"for later")) + hello(rank)[:7]


MANNERS = {"whole": Manner(1 << 20), "bytes": Manner(1), "trailing": Manner(1 << 20, more=True)}


def say(sock: socket.socket, data: bytes, piece: int) -> None:
    for at in range(0, len(data), piece):
        sock.sendall(data[at : at + piece])


def exactly(sock: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        more = sock.recv(count - len(got))
        assert more, f"closed after {got.hex()}"
        got += more
    return got


def replay(vector: Vector, ours: int, manner: Manner, deed: Callable[[ProcessGroup], T]) -> T:
    """Let our rank do *deed* among scripted peers; return what it returns."""
    script = Script(vector, ours)
    results: List[T] = []
    more = {"RLX_DETERMINISTIC_REDUCE": "1"} if vector.deterministic else {}
    node = Node.from_env(environment(ours, script.peers, vector.topology, HEAP_MB="1", **more))

    def be_rank() -> None:
        with node.timeout(PATIENCE_S).connect() as group:
            results.append(deed(group))

    rank = threading.Thread(target=be_rank)
    rank.start()
    script.connect()
    script.play(manner)
    rank.join(PATIENCE_S)
    script.see_the_end()
    return results[0]


CASES = [(vector, rank) for vector in PLAYABLE.values() for rank in range(vector.world)]


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
@pytest.mark.parametrize(("vector", "ours"), CASES, ids=[f"{v.name}-{rank}" for v, rank in CASES])
def test_a_rank_of_ours_fits_in_at_every_position(
    vector: Vector, ours: int, manner: Manner
) -> None:
    """It sends exactly the captured bytes, nothing more, and ends with the captured results."""
    ops = vector.ranks[ours]
    results = replay(vector, ours, manner, lambda group: [DEEDS[op["op"]](group, op) for op in ops])

    captured = [op.get("result") for op in ops]
    assert [None if each is None else each.hex() for each in results] == captured


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
def test_gets_at_the_edges_are_answered_as_captured(manner: Manner) -> None:
    """Too short a request is passed over, one past the heap gets an empty answer."""
    vector = VECTORS["getreq_edges"]
    last = encode(Frame(Kind.SEND, 0, 9, b""))
    extended = vector._replace(frames=[*vector.frames, (0, 1, last)])

    def serve(group: ProcessGroup) -> bytes:
        group.put(1, 0, b"ABCD")
        return group.recv_bytes(0, 9)

    assert replay(extended, 1, manner, serve) == b""


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


def test_every_captured_exchange_is_replayed() -> None:
    """All 24 are here; those without a program are greetings and the edges of a get."""
    assert len(VECTORS) == 24
    assert set(VECTORS) - set(PLAYABLE) == {"hello", "hello_star", "getreq_edges"}
