"""Two ranks come to know each other, and nobody else gets in: the handshake of the native wire."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple, Type

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.runtime.errors import GroupError
from rlxdeploy.runtime.wire.handshake import MAX_BODY, Handshake, parse_key
from rlxdeploy.runtime.wire.identity import (
    HandshakeRefused,
    Identity,
    IdentityMismatch,
    Stranger,
    WrongKey,
)

KEY = bytes(range(32))
OURS = Identity("job", "plan-1", 4, 0, "a" * 32, "psk", "host", 2)
THEIRS = replace(OURS, rank=3, incarnation="b" * 32)
# A frame's first eight bytes: magic, version, kind, length.
HELLO, PROOF, VERDICT = 1, 2, 3


class Pair(NamedTuple):
    """A dialler and an acceptor, and what each of them raised."""

    dialler: Handshake
    acceptor: Handshake


Tamper = Callable[[bytes], bytes]


def pair(
    dialler: Identity = THEIRS,
    acceptor: Identity = OURS,
    keys: Tuple[bytes, bytes] = (KEY, KEY),
    dialled: int = 0,
) -> Pair:
    return Pair(
        Handshake(dialler, keys[0], b"d" * 32, dialled=dialled),
        Handshake(acceptor, keys[1], b"a" * 32),
    )


def frames(stream: bytes) -> List[bytes]:
    """Cut a stream into whole frames."""
    found = []
    while stream:
        length = 8 + int.from_bytes(stream[6:8], "little")
        found.append(stream[:length])
        stream = stream[length:]
    return found


def feed(end: Handshake, stream: bytes, piece: int = 4096) -> Tuple[bytes, Optional[GroupError]]:
    """Give *end* the stream in pieces; return what it says and what it raises, and its last words.

    What it was not fed since it did not want it is dropped: the other end has hung up by then.
    """
    said = b""
    try:
        while stream and end.wanted:
            size = min(piece, end.wanted)
            said += end.receive(stream[:size])
            stream = stream[size:]
            if end.proven:
                said += end.welcome()
    except GroupError as error:
        last = error.reply if isinstance(error, HandshakeRefused) else b""
        return said + last, error
    return said, None


def talk(
    ends: Pair,
    piece: int = 4096,
    to_acceptor: Tamper = bytes,
    to_dialler: Tamper = bytes,
) -> Tuple[Optional[GroupError], Optional[GroupError]]:
    """Let both ends talk until neither says anything; return what each raised."""
    outward = ends.dialler.opening
    dialler: Optional[GroupError] = None
    acceptor: Optional[GroupError] = None
    while outward and acceptor is None:
        inward, acceptor = feed(ends.acceptor, to_acceptor(outward), piece)
        if dialler is not None:
            break
        outward, dialler = feed(ends.dialler, to_dialler(inward), piece)
    return dialler, acceptor


@pytest.mark.parametrize("piece", [1, 7, 4096])
@pytest.mark.parametrize("security", ["psk", "none"])
def test_two_ranks_of_one_job_meet(security: str, piece: int) -> None:
    """However the bytes are cut up, both ends are done and know who the other is."""
    ends = pair(replace(THEIRS, security=security), replace(OURS, security=security))

    assert talk(ends, piece) == (None, None)
    assert (ends.dialler.done, ends.acceptor.done) == (True, True)
    assert ends.acceptor.peer == replace(THEIRS, security=security)
    assert ends.dialler.peer == replace(OURS, security=security)


DIFFERENT: Dict[str, Tuple[Identity, str, object, object]] = {
    "job": (replace(THEIRS, job="other"), "job", "job", "other"),
    "plan": (replace(THEIRS, plan="plan-2"), "plan", "plan-1", "plan-2"),
    "world": (replace(THEIRS, world=5), "world", 4, 5),
    "security": (replace(THEIRS, security="none"), "security", "psk", "none"),
}


@pytest.mark.parametrize(
    ("theirs", "name", "here", "there"), DIFFERENT.values(), ids=DIFFERENT.keys()
)
def test_what_differs_is_an_error_on_both_ends_with_both_values(
    theirs: Identity, name: str, here: object, there: object
) -> None:
    """Neither end guesses: each names what it has and what the other has."""
    ends = pair(theirs)
    dialler, acceptor = talk(ends)

    assert isinstance(acceptor, IdentityMismatch)
    assert (acceptor.ours, acceptor.theirs) == ({name: here}, {name: there})
    assert isinstance(dialler, IdentityMismatch)
    assert (dialler.ours, dialler.theirs) == ({name: there}, {name: here})
    assert dialler.exit_code == acceptor.exit_code == 78


def test_another_rank_than_was_dialled_is_refused() -> None:
    """Who dials rank 1 and finds rank 0 has a wrong address, and says so."""
    dialler, _ = talk(pair(dialled=1))

    assert isinstance(dialler, IdentityMismatch)
    assert (dialler.ours, dialler.theirs) == ({"rank": 1}, {"rank": 0})


def test_a_rank_with_ones_own_number_is_refused() -> None:
    """Two processes with one rank do not form a link."""
    _, acceptor = talk(pair(replace(THEIRS, rank=0), dialled=0))

    assert isinstance(acceptor, IdentityMismatch)


def test_another_version_is_an_error_on_both_ends_with_both() -> None:
    """Versions are compared before anything whose form may have changed."""

    def older(stream: bytes) -> bytes:
        return b"".join(f[:4] + b"\x09" + f[5:] for f in frames(stream))

    _, acceptor = talk(pair(), to_acceptor=older)
    assert isinstance(acceptor, IdentityMismatch)
    assert acceptor.theirs == {"wire version": 9}
    assert acceptor.ours == {"wire version": 1}

    dialler, _ = talk(pair(), to_dialler=older)
    assert isinstance(dialler, IdentityMismatch)
    assert dialler.theirs == {"wire version": 9}


def test_another_key_is_refused_on_both_ends() -> None:
    """Who lacks the key is told so, and learns nothing of it."""
    dialler, acceptor = talk(pair(keys=(b"x" * 32, KEY)))

    assert isinstance(dialler, WrongKey)
    assert isinstance(acceptor, WrongKey)
    assert "RLX_KEY_FILE" in str(acceptor)
    assert KEY.hex() not in str(acceptor)


def test_a_verdict_reaches_who_was_turned_away() -> None:
    """The acceptor may know a reason the handshake does not: the rank is here already."""
    ends = pair()
    hello, _ = feed(ends.acceptor, ends.dialler.opening)
    proof, _ = feed(ends.dialler, hello)
    ends.acceptor.receive(proof[:8])
    ends.acceptor.receive(proof[8:])
    assert ends.acceptor.proven
    _, error = feed(ends.dialler, ends.acceptor.refuse("rank 3 is here already"))

    assert isinstance(error, HandshakeRefused)
    assert "rank 3 is here already" in str(error)


ATTACKS: Dict[str, Tuple[Tamper, Type[GroupError]]] = {
    "truncated proof": (
        lambda s: cut(s, PROOF, lambda f: f[:6] + (16).to_bytes(2, "little") + f[8:24]),
        WrongKey,
    ),
    "empty proof": (lambda s: cut(s, PROOF, lambda f: f[:6] + b"\0\0"), WrongKey),
    "longer proof": (
        lambda s: cut(s, PROOF, lambda f: f[:6] + (33).to_bytes(2, "little") + f[8:] + b"\0"),
        WrongKey,
    ),
    "one bit": (lambda s: cut(s, PROOF, lambda f: f[:-1] + bytes([f[-1] ^ 1])), WrongKey),
    "proof of nothing": (lambda s: cut(s, PROOF, lambda f: f[:8] + bytes(32)), WrongKey),
    "another rank": (
        lambda s: cut(s, HELLO, lambda f: f.replace(b'"rank": 3', b'"rank": 2')),
        WrongKey,
    ),
    "another nonce": (
        lambda s: cut(s, HELLO, lambda f: f.replace(b"64" * 32, b"65" * 32)),
        WrongKey,
    ),
    "proof before hello": (lambda s: b"RLXN\x01\x02\x20\x00" + bytes(32) + s, Stranger),
    "verdict instead of proof": (
        lambda s: cut(s, PROOF, lambda _: b"RLXN\x01\x03\x00\x00"),
        Stranger,
    ),
    "no JSON": (lambda s: cut(s, HELLO, lambda f: f[:8] + b"\xff" * (len(f) - 8)), Stranger),
    "another wire": (lambda _: bytes.fromhex("01030000000000000000000000"), Stranger),
    "a web browser": (lambda _: b"GET / HTTP/1.1\r\n\r\n", Stranger),
    "too long": (lambda _: b"RLXN\x01\x01" + (MAX_BODY + 1).to_bytes(2, "little"), Stranger),
}


def cut(stream: bytes, kind: int, change: Tamper) -> bytes:
    """Change the frames of one kind."""
    return b"".join(change(f) if f[5] == kind else f for f in frames(stream))


@pytest.mark.parametrize(("attack", "raised"), ATTACKS.values(), ids=ATTACKS.keys())
def test_nobody_gets_in_without_the_key(attack: Tamper, raised: Type[GroupError]) -> None:
    """Whatever is changed on the way to the acceptor, it refuses."""
    ends = pair()
    _, acceptor = talk(ends, to_acceptor=attack)

    assert isinstance(acceptor, raised)
    assert not ends.acceptor.done


def test_ones_own_words_sent_back_prove_nothing() -> None:
    """A mirror that answers a dialler with its own HELLO and PROOF is a stranger."""
    ends = pair()
    _, error = feed(ends.dialler, ends.dialler.opening)

    assert isinstance(error, Stranger)
    assert not ends.dialler.done


def test_the_acceptors_own_proof_sent_back_proves_nothing() -> None:
    """Each role proves with other words."""
    ends = pair()
    answer, _ = feed(ends.acceptor, ends.dialler.opening)
    proof = next(f for f in frames(answer) if f[5] == PROOF)
    _, error = feed(ends.acceptor, proof)

    assert isinstance(error, WrongKey)


def test_a_recorded_handshake_cannot_be_played_again() -> None:
    """The acceptor's nonce is new each time, so an old proof does not fit."""
    ends = pair()
    recorded: List[bytes] = []

    def record(stream: bytes) -> bytes:
        recorded.append(stream)
        return stream

    assert talk(ends, to_acceptor=record) == (None, None)
    again = Handshake(OURS, KEY, b"n" * 32)
    _, error = feed(again, b"".join(recorded))

    assert isinstance(error, WrongKey)


@given(st.binary(max_size=200), st.sampled_from([b"", b"RLXN", b"RLXN\x01\x01\x10\x00"]))
def test_garbage_is_a_stranger_and_nothing_else(garbage: bytes, start: bytes) -> None:
    """Whatever comes, it is a Stranger or a HandshakeRefused, or there is not enough yet."""
    end = Handshake(OURS, KEY, b"n" * 32)
    _, error = feed(end, start + garbage, 5)

    assert error is None or isinstance(error, (Stranger, HandshakeRefused))
    assert not end.done


@given(st.data())
def test_any_changed_byte_keeps_the_acceptor_shut(data: st.DataObject) -> None:
    """No single byte of what the dialler says can be another one."""
    ends = pair()
    position = data.draw(st.integers(0, len(ends.dialler.opening) + 39))
    flip = data.draw(st.integers(1, 255))
    seen = 0

    def change(stream: bytes) -> bytes:
        nonlocal seen
        at, seen = position - seen, seen + len(stream)
        if not 0 <= at < len(stream):
            return stream
        return stream[:at] + bytes([stream[at] ^ flip]) + stream[at + 1 :]

    talk(ends, to_acceptor=change)

    assert not ends.acceptor.done


@pytest.mark.parametrize(
    "hello",
    [
        {},
        [],
        {"nonce": "00"},
        {**json.loads(json.dumps(THEIRS.__dict__)), "nonce": "00" * 31},
        {**THEIRS.__dict__, "nonce": "00" * 32, "more": 1},
        {**THEIRS.__dict__, "nonce": "00" * 32, "rank": True},
        {**THEIRS.__dict__, "nonce": "00" * 32, "rank": "3"},
        {**THEIRS.__dict__, "nonce": "00" * 32, "job": "j" * 129},
    ],
    ids=["empty", "list", "few", "short nonce", "more", "bool", "text", "long"],
)
def test_a_hello_of_another_form_is_a_stranger(hello: object) -> None:
    """Fields are exactly those of this version, of their types and within their bounds."""
    body = json.dumps(hello).encode()
    _, error = feed(
        Handshake(OURS, KEY, b"n" * 32),
        b"RLXN\x01\x01" + len(body).to_bytes(2, "little") + body,
    )

    assert isinstance(error, Stranger)


@pytest.mark.parametrize("text", ["", "00", "zz" * 32, "00" * 33, "0" * 63])
def test_a_key_that_is_none_is_refused_without_repeating_it(text: str) -> None:
    """The error says what a key looks like, never what was read."""
    with pytest.raises(ValueError, match="64 hex digits") as caught:
        parse_key(text)

    assert not text or text not in str(caught.value)


def test_a_key_is_64_hex_digits() -> None:
    """White space around it, as editors leave it, does not matter."""
    assert parse_key(f" {KEY.hex()}\n") == KEY
