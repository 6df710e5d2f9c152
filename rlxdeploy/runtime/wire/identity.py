"""Who a rank is, and what the two ends of a handshake raise where they do not belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional

from rlxdeploy.runtime.errors import RefusedError, WireError


@dataclass(frozen=True)
class Identity:
    """Who a rank is: *incarnation* differs at each start, *host* is alike on one machine.

    That machine has *cores* for the rank to use.
    """

    job: str
    plan: str
    world: int
    rank: int
    incarnation: str
    security: str
    host: str = ""
    cores: int = 1


class Stranger(WireError):
    """Whoever is at the other end does not speak the native wire."""


class HandshakeRefused(RefusedError):
    """The two ends do not belong to one group; *reply* is still to be sent, then the end.

    *proven* tells that the other end holds the job's key; *address*, once known, is where it is.
    """

    reply: bytes = b""
    proven: bool = False
    address: str = ""

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.address}: {text}" if self.address else text


class IdentityMismatch(HandshakeRefused):
    """The ends differ; *ours* and *theirs* hold what each has, by name.

    *rank* is None where the other end is of a version whose HELLO this one cannot read.
    """

    def __init__(
        self, rank: Optional[int], ours: Mapping[str, Any], theirs: Mapping[str, Any]
    ) -> None:
        who = "a rank" if rank is None else f"rank {rank}"
        said = "; ".join(
            f"{name} here is {ours[name]!r}, there {theirs[name]!r}" for name in sorted(ours)
        )
        super().__init__(f"{who} does not belong to this group: {said}")
        self.rank, self.ours, self.theirs = rank, dict(ours), dict(theirs)


class WrongKey(HandshakeRefused):
    """The other end does not hold the key this rank holds."""
