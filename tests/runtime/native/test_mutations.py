"""The native wire with mistakes in it: nothing but an error of the group, no memory for the asking.

The same properties are put to ranks with a check left out, and must find them.
"""

from __future__ import annotations

import contextlib
import socket
import tracemalloc
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple, Type

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.native_steps import Shape
from rlxdeploy.runtime.errors import GroupError, PeerLost
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.base import Call
from rlxdeploy.runtime.link.channel import Channel
from rlxdeploy.runtime.link.errands import Errands
from rlxdeploy.runtime.link.heap import Heap
from rlxdeploy.runtime.link.native import Native
from rlxdeploy.runtime.vocabulary import Dtype, Kind, Op
from rlxdeploy.runtime.wire.control import LOST, Cause, encode_abort, encode_goodbye
from rlxdeploy.runtime.wire.handshake import Handshake
from rlxdeploy.runtime.wire.header import Header
from rlxdeploy.runtime.wire.identity import Identity, IdentityMismatch
from tests.runtime.mutations import SEARCH, mistaken
from tests.runtime.native.ranks import PATIENCE, call, connect

LIMIT = 4096
LIMITS = Limits(max_payload=LIMIT, max_unread=LIMIT, lost_grace_s=0.0, farewell_s=0.01)
# What was sent, taken out of the kernel; a payload; and the interpreter's own.
MOST_MEMORY = 16 * LIMIT
Rank = Callable[[socket.socket], Native]


def rank_zero(sock: socket.socket) -> Native:
    """Return rank 0 of two, linked to whoever holds the other end of *sock*."""
    links = {1: Channel(1, "there", sock)}
    return Native(Shape(0, 2, crowded=True), links, LIMITS, PATIENCE, Heap(LIMIT))


def said(op: Op, payload: bytes = b"", **fields: int) -> bytes:
    """Return a message of rank 1."""
    fields = {"length": len(payload), "total": len(payload), **fields}
    return Header(op, **fields).encode() + payload


class Deed(NamedTuple):
    """A call of rank 0, and what rank 1 says in its part of the call with a sequence number."""

    ours: Callable[[Native], Any]
    theirs: Callable[[int], bytes]
    counts: bool = True


def floats() -> np.ndarray[Any, Any]:
    return np.ones(4, np.float32)


SIXTEEN = bytes(16)
DEEDS = [
    Deed(
        lambda native: native.barrier(call()),
        lambda sequence: said(Op.BARRIER, sequence=sequence),
    ),
    Deed(
        lambda native: native.all_reduce(floats(), ReduceKind.SUM, Dtype.FLOAT32, call()),
        lambda sequence: said(
            Op.ALL_REDUCE, SIXTEEN, kind=Kind.SUM, dtype=Dtype.FLOAT32, sequence=sequence
        ),
    ),
    Deed(
        lambda native: native.federated_average(floats(), Dtype.FLOAT32, 30.0, call()),
        lambda sequence: said(
            Op.AVERAGE, SIXTEEN, kind=Kind.MEAN, dtype=Dtype.FLOAT32, sequence=sequence
        ),
    ),
    Deed(
        lambda native: native.take(1, 9, call()),
        lambda _: said(Op.SEND, b"nine", root=9),
        counts=False,
    ),
    Deed(
        lambda native: native.get(1, 0, memoryview(bytearray(8)), call()),
        lambda _: said(Op.GOT, bytes(8), total=0),
        counts=False,
    ),
]
# What rank 1 may say at any time: messages that nobody waits for, errands, and its last words.
UNASKED = [
    said(Op.SEND, b"later", root=5),
    said(Op.PUT, bytes(8), total=16),
    said(Op.GET, total=8, sequence=8),
    said(Op.AVERAGE, SIXTEEN, kind=Kind.MEAN, dtype=Dtype.FLOAT32, sequence=0),
    encode_goodbye(),
    encode_abort(Cause(LOST, 1, "barrier", why="a reason")),
]


class Talk(NamedTuple):
    """What rank 0 calls, and what it hears."""

    deeds: List[Deed]
    wire: bytes


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    """Return calls and the right answers to them, errands in between, with mistakes in it all."""
    deeds = draw(st.lists(st.sampled_from(DEEDS), min_size=1, max_size=4))
    wire, sequence = b"", 0
    for deed in deeds:
        wire += b"".join(draw(st.lists(st.sampled_from(UNASKED), max_size=2)))
        sequence += deed.counts
        wire += deed.theirs(sequence)
    return Talk(deeds, draw(mistaken(wire)))


@contextlib.contextmanager
def at_most(most: int) -> Iterator[None]:
    """Fail where more than *most* bytes more are held at any time."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < most, "memory is given for the asking"


def listen(rank: Rank, talk: Talk) -> None:
    """Let a rank make its calls on what it hears; only an error of the group may end them."""
    ours, theirs = connect(None)
    with ours, theirs:
        native = rank(ours)
        theirs.sendall(talk.wire)
        theirs.shutdown(socket.SHUT_WR)
        with at_most(MOST_MEMORY), contextlib.suppress(GroupError):
            for deed in talk.deeds:
                deed.ours(native)


@given(talk=talks())
def test_mistakes_end_in_an_error_of_the_group_and_cost_no_memory(talk: Talk) -> None:
    """Whatever a rank says, its peer goes on or raises what any group may raise."""
    listen(rank_zero, talk)


HUGE: Dict[str, Tuple[bytes, Deed, str]] = {
    "a get": (said(Op.GET, sequence=8, length=1 << 62), DEEDS[0], "announced"),
    "a late average": (said(Op.AVERAGE, sequence=0, length=1 << 40), DEEDS[0], "announced"),
    "a call ahead of a get": (said(Op.BARRIER, sequence=1, length=1 << 62), DEEDS[4], "far ahead"),
}


@pytest.mark.parametrize(("wire", "deed", "words"), HUGE.values(), ids=HUGE)
def test_a_length_that_no_rank_can_mean_is_the_end_of_its_link(
    wire: bytes, deed: Deed, words: str
) -> None:
    """The rank that announced it is named, and no memory is given."""
    ours, theirs = connect(None)
    with ours, theirs:
        theirs.sendall(wire)
        native = rank_zero(ours)
        with at_most(MOST_MEMORY), pytest.raises(PeerLost, match=words) as raised:
            deed.ours(native)
    assert raised.value.rank == 1


class LengthUnchecked(Errands):
    """Errands that believe any length."""

    def _bounded(self, _channel: Channel, _header: Header, _most: int, _call: Call) -> None:
        pass


def believes_lengths(sock: socket.socket) -> Native:
    native = rank_zero(sock)
    # It makes itself the one that runs them.
    LengthUnchecked(native._driver, Heap(LIMIT), LIMITS)  # noqa: SLF001 - the planted bug
    return native


def test_a_length_that_is_not_checked_is_found() -> None:
    """The property above fails for a rank without the check, so it does test it."""

    @SEARCH
    @given(talk=talks())
    def search(talk: Talk) -> None:
        listen(believes_lengths, talk)

    with pytest.raises((AssertionError, MemoryError, OverflowError)):
        search()


OURS = Identity("job", "plan", 3, 0, "a" * 32, "none", "host", 2)
FIELDS: Dict[str, st.SearchStrategy[Any]] = {
    "job": st.sampled_from(["job", "job ", ""]),
    "plan": st.sampled_from(["plan", "plan2"]),
    "world": st.integers(-1, 5),
    "rank": st.integers(-1, 5) | st.sampled_from([2**31, 2**64]),
    "security": st.sampled_from(["none", "psk"]),
}
CHANGES = st.one_of([st.fixed_dictionaries({name: to}) for name, to in FIELDS.items()])


def greet(kind: Type[Handshake], change: Dict[str, Any]) -> None:
    """Let somebody who says *change* of itself knock; fail where a stranger is let in."""
    guest = replace(OURS, **{"rank": 1, "incarnation": "b" * 32, **change})
    acceptor = kind(OURS, b"", b"a" * 32)
    dialler = Handshake(guest, b"", b"d" * 32, dialled=0)
    with contextlib.suppress(GroupError):
        answer = _feed(acceptor, dialler.opening)
        _feed(acceptor, _feed(dialler, answer))
    if acceptor.proven:
        assert guest.rank in {1, 2}, "a rank that nobody awaits got in"
        assert replace(guest, rank=0, incarnation="a" * 32) == OURS, "a stranger got in"


def _feed(end: Handshake, stream: bytes) -> bytes:
    reply = b""
    while stream and end.wanted:
        size = end.wanted
        reply += end.receive(stream[:size])
        stream = stream[size:]
    return reply


@given(change=CHANGES)
def test_nobody_gets_in_under_another_identity(change: Dict[str, Any]) -> None:
    """Without a key too: who is let in is an awaited rank of this very job."""
    greet(Handshake, change)


class RankUnchecked(Handshake):
    """An end that believes any rank."""

    def _compare(self, peer: Identity) -> Optional[IdentityMismatch]:
        return super()._compare(replace(peer, rank=1))


def test_a_rank_that_is_not_checked_is_found() -> None:
    """The property above fails for an end without the check, so it does test it."""

    @settings(SEARCH, max_examples=200)
    @given(change=CHANGES)
    def search(change: Dict[str, Any]) -> None:
        greet(RankUnchecked, change)

    with pytest.raises(AssertionError, match="nobody awaits"):
        search()
