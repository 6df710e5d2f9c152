"""Who belongs to the group and who is still missing; links tell it, a person reads it."""

from __future__ import annotations

from typing import Dict, Iterable, List, Tuple


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
