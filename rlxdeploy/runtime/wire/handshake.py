"""How two ranks of the native wire get to know each other, without a socket.

Frames are `RLXN`, version u8, kind u8, length u16 (little-endian), then the body:

    dialler   HELLO  who I am, a nonce                  acceptor  HELLO, PROOF
    dialler   PROOF                                     acceptor  VERDICT (empty: welcome)

A HELLO is a JSON object; a PROOF is HMAC-SHA256 under the job's key over the role of who proves and
both HELLO frames as they went over the wire, so it covers every field of both and two fresh
nonces: it cannot be replayed, reflected or made for other values.  Where the two differ in
anything they must share, both still prove themselves, and both say what each has.  With
security "none" the key is empty and a proof proves nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict
from enum import Enum
from struct import Struct
from typing import Any, Dict, Optional, Tuple, Type

from rlxdeploy.runtime.wire.identity import (
    HandshakeRefused,
    Identity,
    IdentityMismatch,
    Stranger,
    WrongKey,
)

MAGIC = b"RLXN"
VERSION = 1
NONCE_BYTES = 32
KEY_BYTES = 32
# A HELLO holds a few names; whoever sends more is no rank.
MAX_BODY = 2048
# Names come from a person's inventory; these bounds keep the longest HELLO under MAX_BODY.
_MAX_NAME = 128

_FRAME = Struct("<4sBBH")
_HELLO, _PROOF, _VERDICT = 1, 2, 3
_PROOF_BYTES = hashlib.sha256().digest_size
# What both ends must have alike, in the words of the error.
_SHARED = ("job", "plan", "world", "security")


class _State(Enum):
    """What is awaited next."""

    HELLO = _HELLO
    PROOF = _PROOF
    VERDICT = _VERDICT
    JUDGE = 4
    DONE = 5
    REFUSED = 6


class Handshake:
    """One end of a handshake; *dialled* is the rank that was dialled, None for the acceptor.

    *nonce* must be fresh random bytes.  Send `opening`, then feed exactly `wanted` bytes at a time
    to `receive` and send what it returns.  Once `proven`, the acceptor calls `welcome` or `refuse`.
    """

    def __init__(
        self, own: Identity, key: bytes, nonce: bytes, *, dialled: Optional[int] = None
    ) -> None:
        if len(nonce) != NONCE_BYTES:
            raise ValueError(f"a nonce has {NONCE_BYTES} bytes")
        self._own, self._dialled = own, dialled
        self._key = key if own.security == "psk" else b""
        self._nonce = nonce
        self._sent_hello = _frame(_HELLO, _encode_hello(own, nonce))
        self._got_hello = b""
        self._differs: Optional[IdentityMismatch] = None
        self._state = _State.HELLO
        self._buffer = b""
        self.peer: Optional[Identity] = None

    @property
    def opening(self) -> bytes:
        """What is sent before anything is received."""
        return b"" if self._dialled is None else self._sent_hello

    @property
    def wanted(self) -> int:
        """How many bytes the next `receive` may be fed at most; 0 once nothing more is due."""
        if self._state in {_State.JUDGE, _State.DONE, _State.REFUSED}:
            return 0
        if len(self._buffer) < _FRAME.size:
            return _FRAME.size - len(self._buffer)
        return _FRAME.size + _length(self._buffer) - len(self._buffer)

    @property
    def proven(self) -> bool:
        """Whether the acceptor knows the dialler and owes a verdict."""
        return self._state is _State.JUDGE

    @property
    def done(self) -> bool:
        """Whether both ends are welcome."""
        return self._state is _State.DONE

    def receive(self, data: bytes) -> bytes:
        """Take at most `wanted` bytes; return what to send now.

        Raises Stranger for what is no handshake, HandshakeRefused where there can be no group.
        """
        self._buffer += data
        self._check_start()
        if len(self._buffer) < _FRAME.size or self.wanted:
            return b""
        frame, self._buffer = self._buffer, b""
        body = frame[_FRAME.size :]
        if self._state is _State.HELLO:
            return self._hear_hello(frame, body)
        if self._state is _State.PROOF:
            return self._hear_proof(body)
        return self._hear_verdict(body)

    def welcome(self) -> bytes:
        """Take the dialler in; return what to send."""
        self._state = _State.DONE
        return _frame(_VERDICT, b"")

    def refuse(self, reason: str) -> bytes:
        """Turn the dialler away; return what to send before hanging up."""
        self._state = _State.REFUSED
        return _frame(_VERDICT, reason.encode()[:MAX_BODY] or b"refused")

    def _check_start(self) -> None:
        """Refuse as early as can be what is no frame, of another version, or out of turn."""
        start = self._buffer[: _FRAME.size]
        if not start.startswith(MAGIC[: len(start)]):
            raise Stranger(f"it does not speak the native wire (it sent {start.hex()})")
        if len(start) < _FRAME.size:
            return
        _, version, kind, length = _FRAME.unpack(start)
        if version != VERSION:
            error = IdentityMismatch(
                self._dialled, {"wire version": VERSION}, {"wire version": version}
            )
            error.reply = self._sent_hello if self._dialled is None else b""
            raise error
        if kind != self._state.value or length > MAX_BODY:
            raise Stranger(f"it sent handshake frame {kind} of {length} bytes out of turn")

    def _hear_hello(self, frame: bytes, body: bytes) -> bytes:
        peer, nonce = _decode_hello(body)
        if hmac.compare_digest(nonce, self._nonce):
            raise Stranger("it sends back what this rank has sent")
        self._got_hello, self.peer = frame, peer
        self._differs = self._compare(peer)
        self._state = _State.PROOF
        if self._dialled is not None:
            return b""
        return self._sent_hello + _frame(_PROOF, self._proof(of_dialler=False))

    def _hear_proof(self, body: bytes) -> bytes:
        dialling = self._dialled is not None
        differs = self._differs
        proven = hmac.compare_digest(body, self._proof(of_dialler=not dialling))
        if not proven and (differs is None or "security" not in differs.ours):
            raise self._refusal(WrongKey(self._wrong_key()))
        if differs is not None:
            differs.proven = proven and bool(self._key)
            raise self._refusal(differs)
        self._state = _State.VERDICT if dialling else _State.JUDGE
        return _frame(_PROOF, self._proof(of_dialler=True)) if dialling else b""

    def _hear_verdict(self, body: bytes) -> bytes:
        if body:
            rank = self.peer.rank if self.peer else "?"
            error = HandshakeRefused(f"rank {rank} refused: {body.decode('utf-8', 'replace')}")
            error.proven = bool(self._key)
            raise error
        self._state = _State.DONE
        return b""

    def _refusal(self, error: HandshakeRefused) -> HandshakeRefused:
        """Let the other end know too: the dialler proves itself, the acceptor says why."""
        dialling = self._dialled is not None
        error.reply = (
            _frame(_PROOF, self._proof(of_dialler=True)) if dialling else self.refuse(str(error))
        )
        return error

    def _compare(self, peer: Identity) -> Optional[IdentityMismatch]:
        ours, theirs = asdict(self._own), asdict(peer)
        names = [name for name in _SHARED if ours[name] != theirs[name]]
        if self._dialled not in {None, peer.rank}:
            ours["rank"], names = self._dialled, [*names, "rank"]
        elif peer.rank == self._own.rank or not 0 <= peer.rank < self._own.world:
            names.append("rank")
        if not names:
            return None
        return IdentityMismatch(
            peer.rank, {name: ours[name] for name in names}, {name: theirs[name] for name in names}
        )

    def _proof(self, *, of_dialler: bool) -> bytes:
        hellos = (self._sent_hello, self._got_hello)
        dialler, acceptor = hellos if self._dialled is not None else reversed(hellos)
        role = b"dialler" if of_dialler else b"acceptor"
        # The hellos are length-prefixed frames: no two pairs of them join to the same bytes.
        return hmac.new(
            self._key, b"rlx native " + role + b"\0" + dialler + acceptor, "sha256"
        ).digest()

    def _wrong_key(self) -> str:
        rank = self.peer.rank if self.peer else "?"
        return (
            f"rank {rank} holds another key than this rank; "
            "every rank of a job needs the same RLX_KEY_FILE"
        )


def parse_key(text: str) -> bytes:
    """Read a job's key: 64 hex digits; ValueError says what is wrong, never what was read."""
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        raise ValueError("the key must be 64 hex digits") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"the key must be 64 hex digits (256 bits), not {len(key) * 2}")
    return key


def _frame(kind: int, body: bytes) -> bytes:
    return _FRAME.pack(MAGIC, VERSION, kind, len(body)) + body


def _length(frame: bytes) -> int:
    return int(_FRAME.unpack_from(frame)[3])


def _encode_hello(identity: Identity, nonce: bytes) -> bytes:
    body = json.dumps({**asdict(identity), "nonce": nonce.hex()}, ensure_ascii=False).encode()
    if len(body) > MAX_BODY:
        raise ValueError(f"job and plan are too long for a HELLO of {MAX_BODY} bytes")
    return body


def _decode_hello(body: bytes) -> Tuple[Identity, bytes]:
    try:
        read = json.loads(body)
        nonce = bytes.fromhex(read.pop("nonce"))
        identity = Identity(**{name: _typed(read, name, of) for name, of in _TYPES.items()})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Stranger(f"it sent a HELLO that cannot be read: {error}") from None
    if len(nonce) != NONCE_BYTES or read:
        raise Stranger("it sent a HELLO with another nonce or other fields than this version's")
    return identity, nonce


_TYPES: Dict[str, Type[Any]] = {
    name: int if name in {"world", "rank", "cores"} else str
    for name in Identity.__dataclass_fields__
}


def _typed(read: Dict[str, Any], name: str, of: Type[Any]) -> Any:  # noqa: ANN401 - str or int
    value = read.pop(name)
    if type(value) is not of or (of is str and len(value) > _MAX_NAME):
        raise TypeError(f"{name} is {value!r:.80}")
    return value
