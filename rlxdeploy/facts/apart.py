"""Ranks that are up and cannot reach one another, from what they say of themselves as they join."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, ValidationError

from rlxdeploy.model.survey import RankSeen

_JOINING = "joining"


@dataclass(frozen=True, slots=True)
class Pair:
    """A rank that dials another in vain, and *why*, while both processes are up and join."""

    dialler: int
    listener: int
    pids: tuple[int, int]
    why: str = field(compare=False)


class _Node(BaseModel):
    """What a rank writes into its state file (`runtime.statefile`), as far as it is of use here."""

    model_config = ConfigDict(frozen=True)

    began_at: float
    missing: frozenset[int]
    in_vain: Mapping[int, str]


def still_apart(
    known: Mapping[Pair, float], seen: Iterable[RankSeen], now: float
) -> Mapping[Pair, float]:
    """Return the pairs that *seen* tells of, each with the time since when it has been *known*.

    The listener counts as up only where it says itself that it joins and lacks the dialler: one
    that is still loading its model, or runs where nobody looks, is waited for.
    """
    return {pair: known.get(pair, now) for pair in _pairs(seen)}


def _pairs(seen: Iterable[RankSeen]) -> Iterator[Pair]:
    joining = {one.rank: (one, node) for one in seen if (node := _node(one)) is not None}
    for rank, (one, node) in joining.items():
        for other in sorted(node.in_vain.keys() & node.missing & joining.keys()):
            listener, its = joining[other]
            if rank in its.missing:
                yield Pair(rank, other, (one.pid, listener.pid), node.in_vain[other])


def _node(seen: RankSeen) -> _Node | None:
    """Return what the process that runs now says while it joins, None where it says nothing."""
    if seen.node.get("phase") != _JOINING:
        return None
    try:
        node = _Node.model_validate(seen.node)
    except ValidationError:
        return None
    # The file of a process before this one stays until the next one has something to say.
    return node if seen.since and node.began_at >= seen.since else None
