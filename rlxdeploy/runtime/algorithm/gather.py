"""barrier, broadcast and all_gather: what is gathered at a root and spread from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlxdeploy.runtime.algorithm.moves import (
    Collect,
    Member,
    Moves,
    Receive,
    Send,
    as_bytes,
)
from rlxdeploy.runtime.algorithm.tags import Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TOKEN = memoryview(b"\x01")


def barrier(member: Member) -> Moves:
    """Let nobody go on before everybody has come: a byte to rank 0, a byte back."""
    if member.rank:
        yield Send(0, Tag.BARRIER, _TOKEN)
        yield Receive(0, Tag.BARRIER, memoryview(bytearray(1)))
        return
    yield Collect(
        tuple(Receive(rank, Tag.BARRIER, memoryview(bytearray(1))) for rank in member.others)
    )
    for rank in member.others:
        yield Send(rank, Tag.BARRIER, _TOKEN)


def broadcast(member: Member, data: NDArray[Any], root: int) -> Moves:
    """Give every rank the *data* of rank *root*; without a link of its own, through rank 0."""
    whole = as_bytes(data)
    through_hub = member.hub and root != 0
    if member.rank == root:
        for rank in (0,) if through_hub else member.others:
            yield Send(rank, Tag.BROADCAST, whole)
        return
    yield Receive(0 if through_hub and member.rank else root, Tag.BROADCAST, whole)
    if through_hub and member.rank == 0:
        for rank in member.others:
            if rank != root:
                yield Send(rank, Tag.BROADCAST, whole)


def all_gather(member: Member, data: NDArray[Any], out: NDArray[Any]) -> Moves:
    """Fill *out* with every rank's *data*, by rank: gathered at rank 0, sent whole to each."""
    if member.rank:
        yield Send(0, Tag.ALL_GATHER, as_bytes(data))
        yield Receive(0, Tag.ALL_GATHER, as_bytes(out))
        return
    parts = out.reshape(member.world, data.size)
    parts[0] = data
    yield Collect(
        tuple(Receive(rank, Tag.ALL_GATHER, as_bytes(parts[rank])) for rank in member.others)
    )
    for rank in member.others:
        yield Send(rank, Tag.ALL_GATHER, as_bytes(out))
