"""What the other ranks get when one fails, is late, or sends what it should not."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Tuple, Type

import numpy as np
import pytest

from rlxdeploy.runtime.algorithm.tags import Tag
from rlxdeploy.runtime.errors import (
    CollectiveMismatch,
    CollectiveTimeout,
    GroupClosed,
    GroupError,
    LengthMismatch,
    NoLink,
    PeerLost,
    WireError,
)
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.node import Node
from rlxdeploy.runtime.wire.frame import Frame, Kind, encode, hello
from tests.runtime.cluster import (
    KINDS,
    MEMORY_MESH,
    NATIVE_MESH,
    NATIVE_STAR,
    PATIENCE_S,
    TCP_MESH,
    TCP_STAR,
    dial,
    environment,
    fresh_host,
    peers_on,
    soon_s,
    start,
)
from tests.runtime.cluster import Kind as LinkKind

MESHES = (MEMORY_MESH, TCP_MESH)
CALLS: Dict[str, Callable[[ProcessGroup], Any]] = {
    "barrier": lambda group: group.barrier(),
    "all_reduce": lambda group: group.all_reduce(np.ones(100_000, np.float32)),
    "all_gather": lambda group: group.all_gather(np.ones(100_000, np.float32)),
    "broadcast": lambda group: group.broadcast(np.ones(100_000, np.float32), 1),
    "watch": lambda group: group.watch(PATIENCE_S),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    ("kind", "how"),
    [(MEMORY_MESH, "close"), (TCP_MESH, "close"), (TCP_MESH, "abort")],
    ids=["memory-close", "tcp-close", "tcp-abort"],
)
def test_whoever_waits_for_a_rank_that_leaves_is_told_its_name(
    kind: LinkKind, how: str, call: Callable[[ProcessGroup], Any]
) -> None:
    """Within a second, in the middle of any call, every rank raises PeerLost for that rank."""
    cluster = start(kind, 3)

    def deed(group: ProcessGroup) -> float:
        if group.rank == 1:
            time.sleep(0.1)
            getattr(group, how)()
            return time.monotonic()
        with pytest.raises(PeerLost) as caught:
            call(group)
        assert caught.value.rank == 1
        return time.monotonic()

    first, left, last = cluster.run(deed)

    assert max(first, last) - left < soon_s()
    cluster.close()


@pytest.mark.parametrize("kind", MESHES, ids=lambda kind: kind.name)
def test_a_rank_lost_outside_a_call_fails_the_next_one(kind: LinkKind) -> None:
    """Nobody is inside a collective when rank 2 leaves; the next call raises at once."""
    cluster = start(kind, 4)
    cluster.groups.pop(2).abort()

    def deed(group: ProcessGroup) -> float:
        began = time.monotonic()
        with pytest.raises(PeerLost, match="rank 2"):
            group.barrier()
        return time.monotonic() - began

    assert max(cluster.run(deed)) < soon_s()
    cluster.close()


def test_in_a_star_the_workers_name_rank_0() -> None:
    """A worker has one link: it is told that this one ended, and why."""
    cluster = start(TCP_STAR, 4)
    cluster.groups.pop(2).close()

    def deed(group: ProcessGroup) -> int:
        with pytest.raises(PeerLost) as caught:
            group.watch(5)
        return caught.value.rank

    lost = cluster.run(deed)

    assert lost == [2, 0, 0]
    cluster.close()


def test_an_exception_in_the_with_block_wakes_the_others() -> None:
    """A program that dies inside its group does not leave the others waiting."""
    cluster = start(TCP_MESH, 2)

    def deed(group: ProcessGroup) -> None:
        with group:
            if group.rank == 1:
                raise KeyError(group.rank)
            group.barrier()

    lost, died = cluster.outcomes(deed)

    assert isinstance(lost, PeerLost)
    assert isinstance(died, KeyError)


@pytest.mark.parametrize("kind", MESHES, ids=lambda kind: kind.name)
def test_a_rank_may_finish_while_others_still_receive(kind: LinkKind) -> None:
    """What was sent before `close` arrives, and a finished rank fails nobody who can do without."""
    cluster = start(kind, 3)
    array = np.arange(300_000, dtype=np.float32)

    def deed(group: ProcessGroup) -> Any:  # noqa: ANN401 - an array
        mine = array.copy() if group.rank == 0 else np.zeros_like(array)
        time.sleep(0.4 * group.rank)
        with group:
            group.broadcast(mine)
            if group.rank == 0:
                group.send_bytes(2, 7, b"last words")
            return mine, group.recv_bytes(0, 7) if group.rank == 2 else b""

    results = cluster.run(deed)

    assert all((mine == array).all() for mine, _ in results)
    assert results[2][1] == b"last words"


@pytest.mark.parametrize("kind", [TCP_MESH, NATIVE_MESH, NATIVE_STAR], ids=lambda kind: kind.name)
def test_who_leaves_last_does_not_wait_for_those_who_are_gone(kind: LinkKind) -> None:
    """Nobody reads its goodbye any more: `close` returns long before it would give up."""
    cluster = start(kind, 3, Limits(linger_s=PATIENCE_S))
    cluster.run(lambda group: group.barrier())
    began = time.monotonic()
    for group in cluster.groups:
        group.close()

    assert time.monotonic() - began < PATIENCE_S / 2


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_call_that_is_late_names_whom_it_waited_for(kind: LinkKind) -> None:
    """Rank 1 never comes: the deadline of the call ends it, and the group is finished."""
    cluster = start(kind, 2)
    group = cluster.groups[0]
    began = time.monotonic()

    with pytest.raises(CollectiveTimeout, match=r"barrier did not end within 0\.2 s.*rank 1"):
        group.barrier(timeout=0.2)

    assert 0.15 < time.monotonic() - began < soon_s()
    with pytest.raises(GroupClosed, match="barrier did not end"):
        group.barrier()
    cluster.close()


@pytest.mark.parametrize("kind", MESHES, ids=lambda kind: kind.name)
def test_a_late_receive_leaves_the_group_usable(kind: LinkKind) -> None:
    """A receive that times out can be tried again, and nothing is lost."""
    cluster = start(kind, 2)
    array = np.zeros(4)

    with pytest.raises(CollectiveTimeout):
        cluster.groups[0].recv(1, 5, array, timeout=0.05)
    with pytest.raises(CollectiveTimeout):
        cluster.groups[0].recv_bytes(1, 5, timeout=0.05)
    cluster.groups[1].send(0, 5, np.arange(4.0))
    cluster.groups[0].recv(1, 5, array)

    assert array.tolist() == [0, 1, 2, 3]
    cluster.close()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_messages_are_kept_apart_by_source_and_tag(kind: LinkKind) -> None:
    """Within one source and tag messages come in order; other tags and sources do not matter."""
    cluster = start(kind, 2)

    def deed(group: ProcessGroup) -> Any:  # noqa: ANN401 - what came
        other = 1 - group.rank
        group.send_bytes(other, 1, b"a")
        group.send_bytes(other, 2, b"b" * 100_000)
        group.send_bytes(other, 1, b"")
        group.send_bytes(group.rank, 1, b"self")
        order = ((other, 2), (group.rank, 1), (other, 1), (other, 1))
        return [group.recv_bytes(source, tag) for source, tag in order]

    assert cluster.run(deed) == [[b"b" * 100_000, b"self", b"a", b""]] * 2
    cluster.close()


def test_both_may_send_before_either_receives() -> None:
    """A blocked send takes in what the other sends: 32 MiB each way, then the receives."""
    cluster = start(TCP_MESH, 2)

    def deed(group: ProcessGroup) -> bool:
        other = 1 - group.rank
        group.send(other, 1, np.full(1 << 23, group.rank, np.float32))
        into = np.empty(1 << 23, np.float32)
        group.recv(other, 1, into)
        return bool((into == other).all())

    assert cluster.run(deed) == [True, True]
    cluster.close()


UNEQUAL: Dict[str, Callable[[ProcessGroup], Any]] = {
    "all_reduce": lambda group: group.all_reduce(np.ones(8 + 4 * group.rank, np.float32)),
    "broadcast": lambda group: group.broadcast(np.ones(8 + 4 * group.rank)),
    "all_gather": lambda group: group.all_gather(np.ones(8 + 4 * group.rank)),
}


@pytest.mark.parametrize("call", UNEQUAL.values(), ids=UNEQUAL)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_unequal_sizes_are_an_error_with_both(
    kind: LinkKind, call: Callable[[ProcessGroup], Any]
) -> None:
    """Arrays of different lengths never give a wrong result."""
    cluster = start(kind, 2)
    failures = cluster.outcomes(call)

    wrong = [each for each in failures if isinstance(each, (LengthMismatch, CollectiveMismatch))]
    assert wrong, failures
    if isinstance(wrong[0], CollectiveMismatch):
        assert len(set(wrong[0].calls.values())) == 2
    else:
        assert wrong[0].expected != wrong[0].got
    cluster.close()


@pytest.mark.parametrize("kind", [TCP_STAR], ids=lambda kind: kind.name)
def test_workers_of_a_star_have_no_link_of_their_own(kind: LinkKind) -> None:
    """A message between two workers is refused with the reason."""
    cluster = start(kind, 3)

    with pytest.raises(NoLink, match="rank 1 has no link to rank 2"):
        cluster.groups[1].send_bytes(2, 0, b"x")
    cluster.close()


@contextmanager
def beside_raw_peer(limits: Limits, **more: str) -> Iterator[Tuple[ProcessGroup, socket.socket]]:
    """Give rank 1's group, and the bare socket that is rank 0."""
    peers = peers_on(fresh_host(), 2)
    node = Node.from_env(environment(1, peers, **more), limits=limits)
    host, _, port = peers[1].rpartition(":")
    groups = []
    joining = threading.Thread(target=lambda: groups.append(node.connect()))
    joining.start()
    raw = dial(host, int(port))
    raw.sendall(hello(0))
    joining.join(PATIENCE_S)
    try:
        yield groups[0], raw
    finally:
        groups[0].abort()
        raw.close()


MISDEEDS: Dict[str, Tuple[bytes, Type[GroupError], str]] = {
    "garbage": (b"GET / HTTP/1.1\r\n\r\n", WireError, "kind 71 does not exist"),
    "foreign": (encode(Frame(Kind.SEND, 3, 1, b"")), WireError, "in the name of rank 3"),
    "huge": (b"\2" + bytes(8) + b"\xff\xff\xff\xff", WireError, "announced 4294967295 bytes"),
    "unasked": (encode(Frame(Kind.GETRESP, 0, 0, b"x")), WireError, "was not asked of it"),
    "aside": (encode(Frame(Kind.GETREQ, 0, 0, bytes(5000))), WireError, "GETREQ of 5000 bytes"),
    "flood": (encode(Frame(Kind.SEND, 0, 9, bytes(900))) * 3, WireError, "nobody asked for"),
    "half": (encode(Frame(Kind.SEND, 0, 1, b"half"))[:-1], PeerLost, "middle of a message"),
}


@pytest.mark.parametrize(("wire", "error", "says"), MISDEEDS.values(), ids=MISDEEDS)
def test_a_peer_that_breaks_the_rules_is_named(
    wire: bytes, error: Type[GroupError], says: str
) -> None:
    """The error names rank and address, and no memory is given for what is not allowed."""
    with beside_raw_peer(Limits(max_payload=1 << 16, max_unread=2000)) as (group, raw):
        raw.sendall(wire)
        raw.shutdown(socket.SHUT_WR)
        with pytest.raises(error, match=f"rank 0 .*{says}"):
            group.recv_bytes(0, 1, timeout=5)


UNFIT: Dict[str, Tuple[int, bytes, Callable[[ProcessGroup], Any], str]] = {
    "chunk": (
        Tag.ALL_TO_ALL,
        bytes(8),
        lambda group: group.all_to_all(np.zeros((2, 1), np.float32)),
        "rank 0 sent 8 bytes where this rank expects 4",
    ),
    "count": (
        Tag.ALL_TO_ALL_V,
        b"\xff" * 8,
        lambda group: group.all_to_all_v([np.zeros(1, np.float32)] * 2),
        "rank 0 announced 18446744073709551615 elements",
    ),
    "half a count": (
        Tag.ALL_TO_ALL_V,
        bytes(4),
        lambda group: group.all_to_all_v([np.zeros(1, np.float32)] * 2),
        "rank 0 sent 4 bytes where this rank expects 8",
    ),
}


@pytest.mark.parametrize(("tag", "said", "call", "words"), UNFIT.values(), ids=UNFIT)
def test_what_does_not_fit_an_exchange_is_refused(
    tag: int, said: bytes, call: Callable[[ProcessGroup], Any], words: str
) -> None:
    """A part of another size, or a count that no memory holds, makes an upstream rank panic."""
    with beside_raw_peer(Limits()) as (group, raw):
        raw.sendall(encode(Frame(Kind.SEND, 0, tag, said)))
        with pytest.raises(WireError, match=words):
            call(group)


def test_a_second_hello_says_nothing_new() -> None:
    """As upstream does, a HELLO after the first is passed over."""
    with beside_raw_peer(Limits()) as (group, raw):
        raw.sendall(hello(0) + encode(Frame(Kind.SEND, 0, 1, b"on")))

        assert group.recv_bytes(0, 1) == b"on"


def test_a_receive_that_gave_up_halfway_gives_its_memory_back() -> None:
    """The rest of the message goes elsewhere, and the next receive gets it whole."""
    with beside_raw_peer(Limits()) as (group, raw):
        wire = encode(Frame(Kind.SEND, 0, 1, bytes(range(256)) * 400))
        into = np.zeros(256 * 400, np.uint8)
        raw.sendall(wire[:50_000])
        with pytest.raises(CollectiveTimeout):
            group.recv(0, 1, into, timeout=0.2)
        into[:] = 9
        raw.sendall(wire[50_000:])

        assert group.recv_bytes(0, 1) == wire[13:]
        assert (into == 9).all()


def test_a_message_that_is_too_big_is_not_begun() -> None:
    """The sender says so, as the receiver would refuse it."""
    with (
        beside_raw_peer(Limits(max_payload=1000)) as (group, _),
        pytest.raises(ValueError, match="at most 1000"),
    ):
        group.send_bytes(0, 1, bytes(1001))


def test_a_send_to_a_rank_that_reads_nothing_ends_at_its_deadline() -> None:
    """The error names the rank that did not take the message."""
    with beside_raw_peer(Limits()) as (group, _), pytest.raises(CollectiveTimeout, match="rank 0"):
        group.send_bytes(0, 1, bytes(32 << 20), timeout=0.3)


def test_a_rank_that_computes_for_long_is_not_lost() -> None:
    """Its kernel answers although it reads nothing for longer than peer_timeout."""
    cluster = start(TCP_MESH, 2, RLX_PEER_TIMEOUT="1")

    def deed(group: ProcessGroup) -> int:
        if group.rank == 0:
            group.send_bytes(1, 1, bytes(32 << 20))
            return 0
        time.sleep(3.5)
        return len(group.recv_bytes(0, 1))

    assert cluster.run(deed) == [0, 32 << 20]
    cluster.close()
