"""Our ranks against scripted peers that send what the public transport sent, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

import numpy as np
import pytest

from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.errors import WireError
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.wire.frame import Frame, Kind, encode
from tests.runtime.golden import DERIVED, PLAYABLE, VECTORS, Vector
from tests.runtime.scripted import MANNERS, Manner, play

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


def reduce_scatter(group: ProcessGroup, op: Dict[str, Any]) -> bytes:
    return group.reduce_scatter(array_of(op), ReduceKind(op["kind"])).tobytes()


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
        *(reduce, reduce_scatter, all_to_all, all_to_all_v, ppermute, federated_average),
    )
}


PLAYED = (*PLAYABLE.values(), *DERIVED.values())
# Where nothing goes between workers a star says the same in the same order; only who dials differs.
STARS = [
    vector._replace(name=f"{vector.name}_in_a_star", topology="star")
    for vector in PLAYED
    if vector.topology == "mesh" and all(0 in (source, to) for source, to, _ in vector.frames)
]
CASES = [(vector, rank) for vector in (*PLAYED, *STARS) for rank in range(vector.world)]


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
@pytest.mark.parametrize(("vector", "ours"), CASES, ids=[f"{v.name}-{rank}" for v, rank in CASES])
def test_a_rank_of_ours_fits_in_at_every_position(
    vector: Vector, ours: int, manner: Manner
) -> None:
    """It sends exactly the expected bytes, nothing more, and ends with the expected results."""
    ops = vector.ranks[ours]
    played = play(vector, ours, manner, lambda group: [DEEDS[op["op"]](group, op) for op in ops])

    expected = [op.get("result") for op in ops]
    assert [None if each is None else each.hex() for each in played.result] == expected


def mirrored(frame: bytes) -> bytes:
    """Return the frame that rank 1 - a sends in place of rank a's."""
    return frame[:1] + bytes([1 - frame[1]]) + frame[2:]


EDGES = VECTORS["getreq_edges"].frames


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
@pytest.mark.parametrize("ours", [1, 0])
def test_gets_at_the_edges_are_answered_as_captured(ours: int, manner: Manner) -> None:
    """Too short a request is passed over, one past the heap gets an empty answer.

    It was captured from rank 1; rank 0 answers alike.
    """
    asked = EDGES if ours else [(to, source, mirrored(data)) for source, to, data in EDGES]
    last = (1 - ours, ours, encode(Frame(Kind.SEND, 1 - ours, 9, b"")))
    extended = VECTORS["getreq_edges"]._replace(frames=[*asked, last])

    def serve(group: ProcessGroup) -> bytes:
        group.put(ours, 0, b"ABCD")
        return group.recv_bytes(1 - ours, 9)

    assert play(extended, ours, manner, serve).result == b""


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
@pytest.mark.parametrize("ours", [0, 1])
def test_gets_at_the_edges_are_asked_as_captured(ours: int, manner: Manner) -> None:
    """Nothing at the end of a heap is nothing; past the end of the peer's, it is named.

    Of the captured requests, those that ours can make; a heap of its own that is bigger lets it.
    """
    plain = encode(Frame(Kind.GETREQ, 0, 0, bytes(4) + b"\4" + bytes(3)))
    told = [(0, 1, plain), EDGES[2], *EDGES[7:], *EDGES[3:5]]
    if ours:
        told = [(to, source, mirrored(data)) for source, to, data in told]
    other = 1 - ours

    def ask(group: ProcessGroup) -> List[bytes]:
        found = [group.get(other, 0, 4), group.get(other, 1 << 20, 0)]
        with pytest.raises(WireError, match=f"rank {other} .*no 4 bytes at offset 1048574"):
            group.get(other, (1 << 20) - 2, 4)
        return found

    vector = VECTORS["getreq_edges"]._replace(frames=told)
    assert play(vector, ours, manner, ask, heap_mib=2).result == [b"ABCD", b""]


@pytest.mark.parametrize("ours", range(3))
@pytest.mark.parametrize("name", ["hello", "hello_star"])
def test_a_rank_of_ours_greets_whom_and_as_was_captured(name: str, ours: int) -> None:
    """Lower ranks dial higher ones in a mesh, workers rank 0 in a star.

    What comes out of their sockets is compared, and nothing comes from who is dialled.
    """
    vector = VECTORS[name]
    captured = {to: said for source, to, said in vector.frames if source == ours}
    silent = vector._replace(frames=[])

    assert play(silent, ours, MANNERS["whole"], lambda _group: None).heard == captured


def test_every_captured_exchange_is_replayed() -> None:
    """All 24 are here; those without a program are greetings and the edges of a get."""
    assert len(VECTORS) == 24
    assert set(VECTORS) - set(PLAYABLE) == {"hello", "hello_star", "getreq_edges"}
