"""The 32 bytes of the native wire, the causes an abort carries, and the messages of a join."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Dict, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.runtime.errors import CollectiveMismatch, CollectiveTimeout, PeerLost, WireError
from rlxdeploy.runtime.vocabulary import EXACT, Dtype, Kind, Op
from rlxdeploy.runtime.wire.control import (
    LATE,
    LOST,
    MAX_CAUSE,
    MISMATCH,
    Cause,
    agree_on_missing,
    decode_abort,
    encode_abort,
)
from rlxdeploy.runtime.wire.header import HEADER_BYTES, WORDS, Header, decode
from rlxdeploy.runtime.wire.identity import Identity
from rlxdeploy.runtime.wire.muster import (
    MAX_MUSTER,
    Muster,
    MusterReader,
    crowded,
    decode_roster,
    decode_wait,
    encode,
    encode_roster,
    encode_wait,
)

GOLDEN: Dict[str, Tuple[Header, str, str]] = {
    "barrier": (
        Header(Op.BARRIER, sequence=7),
        "01000001 00000000 0700000000000000 0000000000000000 0000000000000000",
        "barrier, call 7",
    ),
    "all_reduce": (
        Header(Op.ALL_REDUCE, Kind.MEAN, Dtype.FLOAT32, sequence=1, length=8, total=16),
        "03020301 00000000 0100000000000000 0800000000000000 1000000000000000",
        "all_reduce(mean) of 4 float32, call 1",
    ),
    "exact": (
        Header(Op.ALL_REDUCE, Kind.SUM, Dtype.FLOAT32, root=EXACT, sequence=2, total=4),
        "03010301 01000000 0200000000000000 0000000000000000 0400000000000000",
        "all_reduce(sum, exact) of 1 float32, call 2",
    ),
    "broadcast": (
        Header(Op.BROADCAST, 0, Dtype.BFLOAT16, root=3, sequence=258, length=2, total=2),
        "02000201 03000000 0201000000000000 0200000000000000 0200000000000000",
        "broadcast(root 3) of 1 bfloat16, call 258",
    ),
    "send": (
        Header(Op.SEND, root=9, length=3, total=3),
        "40000001 09000000 0000000000000000 0300000000000000 0300000000000000",
        "send(tag 9) of 3 bytes",
    ),
    "goodbye": (
        Header(Op.GOODBYE),
        "81000001 00000000 0000000000000000 0000000000000000 0000000000000000",
        "goodbye",
    ),
}


@pytest.mark.parametrize(("header", "hexed", "said"), GOLDEN.values(), ids=GOLDEN.keys())
def test_golden_bytes_both_ways_and_their_words(header: Header, hexed: str, said: str) -> None:
    """What we send is what is written here, reads back, and is said in the words of the call."""
    wire = bytes.fromhex(hexed)

    assert header.encode() == wire
    assert len(wire) == HEADER_BYTES
    assert decode(wire) == header
    assert str(header) == said


@given(
    st.builds(
        Header,
        st.sampled_from(Op),
        st.sampled_from(Kind),
        st.sampled_from(Dtype),
        st.just(1),
        st.integers(0, 2**32 - 1),
        *[st.integers(0, 2**64 - 1)] * 3,
    )
)
def test_a_header_is_four_words_and_comes_back(header: Header) -> None:
    """However it is packed, the same 32 bytes go out, and read back as what went in."""
    wire = header.encode()

    assert WORDS.pack(header.word, header.sequence, header.length, header.total) == wire
    assert decode(wire) == header
    assert str(header)


@given(st.binary(min_size=HEADER_BYTES, max_size=HEADER_BYTES))
def test_garbage_is_a_wire_error_or_a_header(garbage: bytes) -> None:
    """What names no operation, kind or dtype of this version is refused, nothing else happens."""
    try:
        header = decode(garbage)
    except WireError:
        return
    assert header.encode() == garbage


CAUSES = {
    "lost": Cause(LOST, 2, "barrier", "10.0.0.2:29500", "it closed the connection"),
    "late": Cause(LATE, 1, "all_reduce", seconds=2.5, missing=(0, 3)),
    "mismatch": Cause(MISMATCH, 0, "barrier", why="barrier, call 1", other=1, theirs="send"),
    "foreign words": Cause(LOST, 2, why="größer als Ω \ud800 \U0001f600"),
    "endless words": Cause(LOST, 2, why="\U0001f600" * 5000, theirs="x" * 5000, missing=(1,) * 999),
}


@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES.keys())
def test_a_cause_comes_back_or_is_shortened(cause: Cause) -> None:
    """An abort is a bounded message, and says the same at the other end."""
    message = encode_abort(cause)
    header, payload = decode(message), message[HEADER_BYTES:]

    assert header.op == Op.ABORT
    assert header.length == len(payload) <= MAX_CAUSE
    back = decode_abort(payload)
    assert (back.what, back.rank) == (cause.what, cause.rank)
    if len(cause.why) < 100 and "\ud800" not in cause.why:
        assert back == cause
    else:
        assert replace(back, why="", theirs="", missing=()) == Cause(LOST, 2)


def test_a_cause_becomes_the_error_of_the_call_it_ends() -> None:
    """All ranks raise one class with one evidence."""
    lost = CAUSES["lost"].error("all_gather")
    assert isinstance(lost, PeerLost)
    assert (lost.rank, lost.address, lost.op) == (2, "10.0.0.2:29500", "all_gather")
    late = CAUSES["late"].error("all_gather")
    assert isinstance(late, CollectiveTimeout)
    assert late.missing == (0, 3)
    different = CAUSES["mismatch"].error("all_gather")
    assert isinstance(different, CollectiveMismatch)
    assert different.calls == {0: "barrier, call 1", 1: "send"}


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 5000,
        json.dumps({**CAUSES["lost"].__dict__, "what": "bored"}).encode(),
        json.dumps({**CAUSES["lost"].__dict__, "rank": "2"}).encode(),
        json.dumps({**CAUSES["lost"].__dict__, "rank": True}).encode(),
        json.dumps({**CAUSES["lost"].__dict__, "missing": ["1"]}).encode(),
    ],
)
def test_an_abort_of_another_form_is_a_wire_error(payload: bytes) -> None:
    """Whatever a peer sends as its cause, it is a cause or a WireError."""
    with pytest.raises(WireError):
        decode_abort(payload)


@pytest.mark.parametrize(
    ("waiting", "missing"),
    [
        ({0: (2,), 1: (0,), 3: (0,)}, (2,)),
        ({0: (1,), 1: (0,)}, (0, 1)),
        ({1: (0,)}, (0,)),
        ({0: (1, 2, 3), 2: (0,)}, (1, 3)),
    ],
    ids=["the one who is silent", "a circle", "all one knows", "two of three"],
)
def test_who_is_missing_is_who_nobody_heard(
    waiting: Dict[int, Tuple[int, ...]], missing: Tuple[int, ...]
) -> None:
    """Ranks that say whom they wait for are alive, so they are not the ones that are missing."""
    assert agree_on_missing(waiting) == missing


@pytest.mark.parametrize("piece", [1, 7, 4096])
def test_what_is_said_during_a_join_comes_back_however_it_is_cut(piece: int) -> None:
    """A reader takes exactly its message: what follows on the wire is the group's own."""
    muster = Muster("token", ("a", "b"), crowded=True)
    reader, heard = MusterReader(), []
    stream = encode_roster(muster) + encode_wait({2: "nobody dialled"}) + encode(Op.GO, "token")
    while stream:
        size = min(piece, reader.wanted)
        message = reader.feed(stream[:size])
        stream = stream[size:]
        heard += [message] if message else []

    assert [op for op, _ in heard] == [Op.ROSTER, Op.WAIT, Op.GO]
    assert decode_roster(heard[0][1]) == muster
    assert decode_wait(heard[1][1]) == {2: "nobody dialled"}
    assert heard[2][1] == "token"


@pytest.mark.parametrize(
    "stream",
    [
        Header(Op.BARRIER).encode(),
        Header(Op.ROSTER, length=MAX_MUSTER + 1).encode(),
        Header(Op.ROSTER, length=1).encode() + b"{",
        bytes(HEADER_BYTES),
    ],
    ids=["a collective", "too long", "no JSON", "nothing"],
)
def test_what_does_not_belong_into_a_join_is_a_wire_error(stream: bytes) -> None:
    """Only the messages of a join are read there, and only up to their bound."""
    reader = MusterReader()
    with pytest.raises(WireError):
        _feed(reader, stream)


def _feed(reader: MusterReader, stream: bytes) -> None:
    while stream:
        size = reader.wanted
        reader.feed(stream[:size])
        stream = stream[size:]
    assert not reader.wanted


@pytest.mark.parametrize("content", [None, [], ["t", ["a"]], ["t", ["a"], 1], ["t", "ab", True]])
def test_a_roster_of_another_form_is_a_wire_error(content: object) -> None:
    """Token, incarnations and whether cores are shared, each of its type."""
    with pytest.raises(WireError):
        decode_roster(content)


@pytest.mark.parametrize(
    ("cores", "hosts", "shared"),
    [(2, "aa", False), (2, "aaa", True), (1, "ab", False), (1, "aab", True), (4, "aabb", False)],
)
def test_ranks_are_crowded_where_they_outnumber_the_cores_of_a_host(
    cores: int,
    hosts: str,
    shared: bool,  # noqa: FBT001 - a case
) -> None:
    """One crowded host is enough, since all ranks must choose one schedule."""
    ranks = [Identity("", "", 9, rank, "", "none", host, cores) for rank, host in enumerate(hosts)]

    assert crowded(ranks) is shared
