"""Exchanges of every rank with every other, each over a link of their own.

Ranks take their partners in ascending order, and the lower rank of a pair sends first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np

from rlxdeploy.runtime.algorithm.moves import Member, Move, Moves, Receive, Send, as_bytes
from rlxdeploy.runtime.algorithm.tags import Tag
from rlxdeploy.runtime.errors import WireError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What the wire says how many elements come with.
COUNT: np.dtype[Any] = np.dtype("<u8")


class Route(NamedTuple):
    """From whom this rank gets something and whom it sends to; None where there is nobody."""

    source: Optional[int]
    to: Optional[int]


def route(rank: int, pairs: Sequence[Sequence[int]]) -> Route:
    """Return the ends that the (source, destination) *pairs* give *rank*."""
    sources = [source for source, to in pairs if to == rank]
    targets = [to for source, to in pairs if source == rank]
    return Route(sources[0] if sources else None, targets[0] if targets else None)


def check_counts(rank: int, counts: Sequence[int], most: int) -> None:
    """Raise WireError where *rank* announces more elements than go into a message."""
    if counts and max(counts) > most:
        raise WireError(
            f"rank {rank} announced {max(counts)} elements; at most {most} go into a message"
        )


def all_to_all(member: Member, data: NDArray[Any], out: NDArray[Any]) -> Moves:
    """Send the i-th equal part of *data* to rank i; *out* holds what came, by rank."""
    sent = data.reshape(member.world, data.size // member.world)
    got = out.reshape(sent.shape)
    got[member.rank] = sent[member.rank]
    yield from _exchange(member, Tag.ALL_TO_ALL, sent.__getitem__, got.__getitem__)


def all_to_all_v(
    member: Member, parts: Sequence[NDArray[Any]], got: List[NDArray[Any]], most: int
) -> Moves:
    """Send parts[i] to rank i; *got* becomes what came, by rank: counts first, then elements.

    *most* is how many elements go into a message.
    """
    sizes = np.array([part.size for part in parts], COUNT)
    counts = sizes.copy()
    by_rank = _rows(sizes), _rows(counts)
    yield from _exchange(member, Tag.ALL_TO_ALL_V, *by_rank)
    for rank in member.others:
        check_counts(rank, [int(counts[rank])], most)
    got[:] = [np.empty(int(count), parts[0].dtype) for count in counts]
    got[member.rank][...] = parts[member.rank]
    yield from _exchange(member, Tag.ALL_TO_ALL_V, parts.__getitem__, got.__getitem__)


def ppermute(
    member: Member, data: NDArray[Any], out: NDArray[Any], pairs: Sequence[Sequence[int]]
) -> Moves:
    """Send *data* to this rank's destination; *out* becomes what its source sends."""
    source, to = route(member.rank, pairs)
    if source == member.rank:
        out[...] = data
        return
    if to is not None:
        yield Send(to, Tag.PPERMUTE, as_bytes(data))
    if source is not None:
        yield Receive(source, Tag.PPERMUTE, as_bytes(out))


_Rows = Callable[[int], "NDArray[Any]"]


def _rows(flat: NDArray[Any]) -> _Rows:
    return lambda rank: flat[rank : rank + 1]


def _exchange(member: Member, tag: Tag, sent: _Rows, got: _Rows) -> Iterator[Move]:
    for other in member.others:
        send = Send(other, tag, as_bytes(sent(other)))
        receive = Receive(other, tag, as_bytes(got(other)))
        if member.rank < other:
            yield send
            yield receive
        else:
            yield receive
            yield send
