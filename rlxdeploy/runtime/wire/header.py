"""The 32 bytes before every message of the native wire, little-endian.

    op u8, kind u8, dtype u8, version u8, root u32, sequence u64, length u64, total u64

Two ranks that make the same call send the same header for the same message, so a receiver
compares what came with what it would have sent itself, and takes no length from the wire.
*length* is this message's payload, *total* the call's bytes a rank; *root* also carries the tag
of a point-to-point message, the mode of an all_reduce and a checksum of a permutation's pairs.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple, Union

from rlxdeploy.runtime.errors import WireError
from rlxdeploy.runtime.vocabulary import EXACT, Dtype, Kind, Op

VERSION = 1
HEADER = Struct("<BBBBIQQQ")
HEADER_BYTES = HEADER.size
# The same 32 bytes as four words, for whoever packs one for every message.
WORDS = Struct("<QQQQ")

Buffer = Union[bytes, bytearray, memoryview]

_OPS = {int(op): op for op in Op}
_ROOTED = {Op.BROADCAST, Op.REDUCE}
_SIZELESS = {Op.BARRIER, Op.ALL_TO_ALL_V, *(op for op in Op if op >= Op.ABORT)}


class Header(NamedTuple):
    """One message's header, in the order of the wire."""

    op: int
    kind: int = 0
    dtype: int = 0
    version: int = VERSION
    root: int = 0
    sequence: int = 0
    length: int = 0
    total: int = 0

    def encode(self) -> bytes:
        """Return the 32 bytes."""
        return HEADER.pack(*self)

    @property
    def word(self) -> int:
        """The first of the four WORDS: all but sequence, length and total."""
        return word(self.op, self.kind, self.dtype, self.root)

    def __str__(self) -> str:
        """Say it in the words of the call, such as `all_reduce(sum) of 4 float32, call 7`."""
        op = _OPS.get(self.op)
        if op is None or self.version != VERSION:
            return f"a message that is none (bytes {HEADER.pack(*self).hex()})"
        text = _call(self, op)
        if op not in _SIZELESS:
            text += f" of {_amount(self)}"
        return text if op >= Op.SEND else f"{text}, call {self.sequence}"


def word(op: int, kind: int, dtype: int, root: int) -> int:
    """Return the first of the four WORDS of such a header."""
    # An integer of numpy would shift within its own few bits.
    return op | kind << 8 | dtype << 16 | VERSION << 24 | int(root) << 32


def decode(data: Buffer) -> Header:
    """Read 32 bytes; WireError where they name no operation, kind or dtype of this version."""
    header = Header(*HEADER.unpack_from(data))
    if header.version != VERSION or header.op not in _OPS:
        raise WireError(f"a message that is none (bytes {bytes(data[:HEADER_BYTES]).hex()})")
    if header.kind > Kind.MIN or header.dtype > Dtype.UINT64:
        raise WireError(f"{_OPS[header.op].name} with kind {header.kind}, dtype {header.dtype}")
    return header


def _call(header: Header, op: Op) -> str:
    inside = []
    if 0 < header.kind <= Kind.MIN:
        inside.append(Kind(header.kind).name.lower())
    if op == Op.ALL_REDUCE and header.root == EXACT:
        inside.append("exact")
    if op in _ROOTED:
        inside.append(f"root {header.root}")
    if op == Op.SEND:
        inside.append(f"tag {header.root}")
    if op == Op.PPERMUTE:
        inside.append(f"pairs {header.root:08x}")
    name = op.name.lower()
    return f"{name}({', '.join(inside)})" if inside else name


def _amount(header: Header) -> str:
    if not 0 < header.dtype <= Dtype.UINT64:
        return f"{header.total} bytes"
    dtype = Dtype(header.dtype)
    return f"{header.total // dtype.bytes} {dtype.name.lower()}"
