"""What rank 0 and the others tell one another while a group forms on the native wire.

WAIT says who is missing and why; ROSTER names the group: its token, each rank's incarnation and
whether ranks share cores; READY and GO repeat the token.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, TypeVar

from rlxdeploy.runtime.errors import WireError
from rlxdeploy.runtime.vocabulary import Op
from rlxdeploy.runtime.wire.header import HEADER_BYTES, Header, decode
from rlxdeploy.runtime.wire.identity import Identity

T = TypeVar("T")

# 64 Ki ranks of 16 bytes each, in hex, and their punctuation.
MAX_MUSTER = 4 << 20
# A reason names an address and an error.
_REASON = 300


@dataclass(frozen=True)
class Muster:
    """The group that is being formed; *incarnations* are by rank."""

    token: str
    incarnations: Tuple[str, ...]
    crowded: bool


def encode(op: Op, content: Any = None) -> bytes:  # noqa: ANN401 - what json can write
    """Return one message."""
    payload = json.dumps(content).encode()
    return Header(op, length=len(payload), total=len(payload)).encode() + payload


def encode_roster(muster: Muster) -> bytes:
    """Return the message that names the group."""
    return encode(Op.ROSTER, [muster.token, list(muster.incarnations), muster.crowded])


def encode_wait(reasons: Mapping[int, str]) -> bytes:
    """Return the message that says who is missing, as far as it fits."""
    return encode(Op.WAIT, [[rank, why[:_REASON]] for rank, why in list(reasons.items())[:1000]])


def decode_roster(content: Any) -> Muster:  # noqa: ANN401 - what json has read
    """Read the group's name; WireError for anything else."""
    return _read(lambda: _muster(*content))


def decode_wait(content: Any) -> Dict[int, str]:  # noqa: ANN401 - what json has read
    """Read who is missing and why; WireError for anything else."""
    return _read(lambda: {int(rank): str(why)[:_REASON] for rank, why in content})


def crowded(identities: Sequence[Identity]) -> bool:
    """Whether on some host the ranks outnumber the cores."""
    ranks = Counter(identity.host for identity in identities)
    return any(ranks[identity.host] > identity.cores for identity in identities)


class MusterReader:
    """Cuts what one rank says into messages; feed it at most `wanted` bytes at a time."""

    def __init__(self) -> None:
        self._held = b""

    @property
    def wanted(self) -> int:
        """How many bytes are missing from the message; what follows it is not ours."""
        if len(self._held) < HEADER_BYTES:
            return HEADER_BYTES - len(self._held)
        return HEADER_BYTES + self._header().length - len(self._held)

    def feed(self, data: bytes) -> Optional[Tuple[Op, Any]]:
        """Take bytes; return the message once it is whole."""
        self._held += data
        if len(self._held) < HEADER_BYTES or self.wanted:
            return None
        header, payload = self._header(), self._held[HEADER_BYTES:]
        self._held = b""
        return Op(header.op), _read(lambda: json.loads(payload))

    def _header(self) -> Header:
        header = decode(self._held)
        if header.op < Op.WAIT or header.length > MAX_MUSTER:
            raise WireError(f"{header} while the group forms")
        return header


def _muster(token: Any, incarnations: Any, shared: Any) -> Muster:  # noqa: ANN401 - what json has read
    right = isinstance(token, str) and isinstance(shared, bool) and isinstance(incarnations, list)
    if not right or not all(isinstance(each, str) for each in incarnations):
        raise TypeError("other fields than a roster has")
    return Muster(token, tuple(incarnations), shared)


def _read(reading: Callable[[], T]) -> T:
    try:
        return reading()
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise WireError(f"a message that cannot be read: {error}") from None
