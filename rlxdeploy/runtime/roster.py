"""Who belongs to the group and who is still missing; links tell it, a person reads it."""

from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from rlxdeploy.runtime.address import Address

# A rank that lives announces itself several times a second; one that moved is silent for longer.
SILENT_S = 3.0


class Roster:
    """The ranks this rank needs a link to, those it has, and what was last tried for the others."""

    def __init__(self, needed: Iterable[int]) -> None:
        self._tried: Dict[int, str] = dict.fromkeys(needed, "nothing was tried yet")
        self._here: Dict[int, str] = {}

    @property
    def complete(self) -> bool:
        """Whether nobody is missing."""
        return len(self._here) == len(self._tried)

    @property
    def missing(self) -> Tuple[int, ...]:
        """The ranks still missing, ascending."""
        return tuple(sorted(set(self._tried) - set(self._here)))

    def tried(self, rank: int, what: str) -> None:
        """Note the last attempt to reach *rank* and what came of it."""
        self._tried[rank] = what

    def came(self, rank: int, address: str) -> None:
        """Note that *rank* is linked, at *address*."""
        self._here[rank] = address

    def went(self, rank: int, why: str) -> None:
        """Note that the link to *rank* ended again."""
        self._here.pop(rank, None)
        self._tried[rank] = why

    def reasons(self) -> Dict[int, str]:
        """Return what was last tried for each missing rank."""
        return {rank: self._tried[rank] for rank in self.missing}


class Seen(NamedTuple):
    """Where a rank was last seen, and when."""

    address: Address
    at: float


class Whereabouts:
    """Where the ranks say they are; the first to claim a rank keeps it while it is heard."""

    def __init__(self, rank: int, world: int, own: Address) -> None:
        self._rank, self._world = rank, world
        self._seen: Dict[int, Seen] = {rank: Seen(own, 0.0)}
        self._doubles: Dict[int, Address] = {}

    @property
    def missing(self) -> Tuple[int, ...]:
        """The ranks nobody has claimed to be, ascending."""
        return tuple(rank for rank in range(self._world) if rank not in self._seen)

    @property
    def addresses(self) -> Tuple[Address, ...]:
        """Every rank's address, by rank, once none is missing."""
        return tuple(self._seen[rank].address for rank in range(self._world))

    def heard(self, rank: int, address: Address, now: float) -> Optional[str]:
        """Take note of what somebody says; return what a person should know about it, once."""
        if rank >= self._world:
            return f"{address} says that it is rank {rank} of a world of {self._world}"
        known = self._seen.get(rank)
        if known is None or known.address == address:
            self._seen[rank] = Seen(address, now)
            return None
        if rank != self._rank and now - known.at > SILENT_S:
            self._seen[rank] = Seen(address, now)
            return f"rank {rank} has moved from {known.address} to {address}"
        if self._doubles.get(rank) == address:
            return None
        self._doubles[rank] = address
        return f"rank {rank} is claimed twice: by {known.address}, which counts, and by {address}"

    def reasons(self) -> Dict[int, str]:
        """Return, for each rank that is missing, that nothing was heard of it."""
        return dict.fromkeys(self.missing, f"it has not announced itself{self.doubts()}")

    def doubts(self) -> str:
        """Return who else claimed to be one of the ranks, for the end of a sentence."""
        return "".join(
            f"; rank {rank} is claimed by {address} too, not only by {self._seen[rank].address}"
            for rank, address in sorted(self._doubles.items())
        )


def dials(rank: int, world: int, *, star: bool) -> List[int]:
    """Return whom *rank* dials: every higher rank in a mesh, rank 0 as a worker of a star."""
    if star:
        return [0] if rank else []
    return list(range(rank + 1, world))


def awaits(rank: int, world: int, *, star: bool) -> List[int]:
    """Return who dials *rank*."""
    if star:
        return [] if rank else list(range(1, world))
    return list(range(rank))
