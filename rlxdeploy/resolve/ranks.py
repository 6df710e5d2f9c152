"""Who is which rank: file order at first, and then as few moves as possible."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """One seat's claim to a number: *pinned* by the inventory, or *held* since the last apply.

    *group* names the host: seats of one host are alike to those outside, so that within a host
    the numbers always ascend in the order of the file, whoever held which.
    """

    group: str
    pinned: int | None = None
    held: int | None = None


def numbers(claims: Sequence[Claim]) -> list[int]:
    """Return each claim's rank, a permutation of `0..len(claims) - 1`.

    Pins come first (they are distinct and below the count), then held ranks that still exist.
    The holes go in ascending order to whoever is left, in the order given: so a rank moves only
    if its number no longer exists or is pinned elsewhere.
    """
    world = len(claims)
    given: dict[int, int] = {
        index: claim.pinned for index, claim in enumerate(claims) if claim.pinned is not None
    }
    taken = set(given.values())
    for index, claim in enumerate(claims):
        held = claim.held
        if index not in given and held is not None and held < world and held not in taken:
            given[index] = held
            taken.add(held)
    holes = iter(sorted(set(range(world)) - taken))
    numbered = [given[index] if index in given else next(holes) for index in range(world)]
    return _ascending(claims, numbered)


def _ascending(claims: Sequence[Claim], numbered: list[int]) -> list[int]:
    """Return *numbered* with the unpinned numbers of each group in ascending order."""
    groups: dict[str, list[int]] = {}
    for claim, rank in zip(claims, numbered, strict=True):
        if claim.pinned is None:
            groups.setdefault(claim.group, []).append(rank)
    ranks = {group: iter(sorted(found)) for group, found in groups.items()}
    return [
        next(ranks[claim.group]) if claim.pinned is None else rank
        for claim, rank in zip(claims, numbered, strict=True)
    ]
