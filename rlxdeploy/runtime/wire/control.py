"""What a rank of the native wire says when it leaves, and why, so that all name the same cause.

An abort carries the first cause its sender knows; whoever receives one passes that on, never its
own.  A goodbye has no payload.  Both are the last message on a link.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Dict, Mapping, Tuple

from rlxdeploy.runtime.errors import (
    CollectiveMismatch,
    CollectiveTimeout,
    GroupError,
    PeerLost,
    WireError,
)
from rlxdeploy.runtime.vocabulary import Op
from rlxdeploy.runtime.wire.header import Header

# A cause is a few numbers and sentences; whoever sends more is no rank.
MAX_CAUSE = 8192
_TEXT = 400
_MISSING = 64

LOST = "lost"
LATE = "late"
MISMATCH = "mismatch"
_WHATS = (LOST, LATE, MISMATCH)


@dataclass(frozen=True)
class Cause:
    """Why the group has ended.

    LOST: *rank* at *address* is gone, and *why*.  LATE: *rank* waited *seconds* for *missing*.
    MISMATCH: *rank* made the call *why*, *other* the call *theirs*.
    """

    what: str
    rank: int
    op: str = ""
    address: str = ""
    why: str = ""
    seconds: float = 0.0
    missing: Tuple[int, ...] = ()
    other: int = 0
    theirs: str = ""

    def error(self, op: str) -> GroupError:
        """Return what the call *op* of this rank raises for it."""
        if self.what == MISMATCH:
            return CollectiveMismatch({self.rank: self.why, self.other: self.theirs})
        if self.what == LATE:
            return CollectiveTimeout(op, self.seconds, self.missing)
        return PeerLost(self.rank, self.address, op, self.why)


def encode_goodbye() -> bytes:
    """Return what a rank says that has finished."""
    return Header(Op.GOODBYE).encode()


def encode_abort(cause: Cause) -> bytes:
    """Return what a rank says that cannot go on."""
    short = {
        key: value[:_TEXT] if isinstance(value, str) else value
        for key, value in asdict(cause).items()
    }
    short["missing"] = list(cause.missing[:_MISSING])
    payload = json.dumps(short, ensure_ascii=False).encode("utf-8", "replace")
    return Header(Op.ABORT, length=len(payload), total=len(payload)).encode() + payload


def decode_abort(payload: bytes) -> Cause:
    """Read a cause; WireError for anything that `encode_abort` would not have written."""
    try:
        return _checked(json.loads(payload))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise WireError(f"an abort that cannot be read: {error}") from None


def _checked(read: Mapping[str, Any]) -> Cause:
    types: Dict[str, Any] = {"rank": int, "other": int, "seconds": (int, float), "missing": list}
    values: Dict[str, Any] = {}
    for name in Cause.__dataclass_fields__:
        value = read[name]
        if isinstance(value, bool) or not isinstance(value, types.get(name, str)):
            raise TypeError(f"{name} is {value!r}")
        values[name] = value
    missing = values["missing"]
    if values["what"] not in _WHATS or not all(type(rank) is int for rank in missing):
        raise ValueError(f"unknown cause {values['what']!r} or ranks {missing!r}")
    return Cause(**{**values, "missing": tuple(missing)})


def agree_on_missing(waiting: Mapping[int, Tuple[int, ...]]) -> Tuple[int, ...]:
    """Return who is missing when each rank of *waiting* says whom it waits for.

    A rank that says whom it waits for is itself alive; if that leaves nobody, all wait in a circle
    and all are named.
    """
    named = {rank for ranks in waiting.values() for rank in ranks}
    return tuple(sorted(named - set(waiting) or named))
