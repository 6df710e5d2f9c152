"""The frame of rlx-driver's rank mesh: 13 bytes, little-endian, then the payload.

kind u8, a u32 (the sender's rank), b u32 (a tag or a heap offset), len u32.  No magic, no version,
no checksum.  A barrier token of rank 1 is `02 01000000 0000f0ff 01000000 01`.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import NamedTuple, Optional, Tuple, Union

from rlxdeploy.runtime.errors import WireError

HEADER = Struct("<BIII")
HEADER_BYTES = HEADER.size
# What the u32 length can say.
MAX_FRAME = (1 << 32) - 1

Buffer = Union[bytes, bytearray, memoryview]


class Kind(IntEnum):
    """What a frame is; no other kinds exist."""

    HELLO = 1
    SEND = 2
    PUT = 3
    GETREQ = 4
    GETRESP = 5


class Frame(NamedTuple):
    """One whole frame; *b* is the tag of a SEND and the heap offset of a PUT or GETRESP."""

    kind: Kind
    source: int
    b: int
    payload: Buffer


class Header(NamedTuple):
    """The 13 bytes before a payload of *length* bytes."""

    kind: Kind
    source: int
    b: int
    length: int


_KINDS = {int(kind): kind for kind in Kind}
_GET_REQUEST = Struct("<II")


def encode_header(kind: int, source: int, b: int, length: int) -> bytes:
    """Return the 13 bytes that go before a payload of *length* bytes."""
    return HEADER.pack(kind, source, b, length)


def encode(frame: Frame) -> bytes:
    """Return *frame* as bytes; a big payload is better sent beside its header, uncopied."""
    return encode_header(frame.kind, frame.source, frame.b, len(frame.payload)) + frame.payload


def parse_header(data: Buffer, offset: int = 0) -> Header:
    """Read the 13 bytes at *offset*; WireError for a kind that does not exist."""
    kind, source, b, length = HEADER.unpack_from(data, offset)
    known = _KINDS.get(kind)
    if known is None:
        raise WireError(f"frame kind {kind} does not exist; whoever sends it is no rank")
    return Header(known, source, b, length)


def hello(rank: int) -> bytes:
    """Return what a rank says first on a connection it has dialled."""
    return encode_header(Kind.HELLO, rank, 0, 0)


def parse_hello(data: Buffer) -> int:
    """Return the rank that says HELLO; WireError for anything but a HELLO without payload.

    `b` is not looked at: upstream sends 0 and ignores it.
    """
    if len(data) != HEADER_BYTES:
        raise WireError(f"expected HELLO, got {len(data)} bytes")
    header = parse_header(data)
    if header.kind is not Kind.HELLO or header.length:
        raise WireError(f"expected HELLO, got {header.kind.name} of {header.length} bytes")
    return header.source


def get_request(rank: int, offset: int, length: int) -> bytes:
    """Return rank's request for *length* bytes at *offset* of the receiver's heap."""
    return encode_header(Kind.GETREQ, rank, 0, _GET_REQUEST.size) + _GET_REQUEST.pack(
        offset, length
    )


def parse_get_request(payload: Buffer) -> Optional[Tuple[int, int]]:
    """Return the offset and length a GETREQ asks for; None where it is too short to say.

    What comes after these is not looked at.
    """
    if len(payload) < _GET_REQUEST.size:
        return None
    offset, length = _GET_REQUEST.unpack_from(payload)
    return offset, length
