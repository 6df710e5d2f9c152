"""Exchanges of every rank with every other where the workers have links to rank 0 alone.

A worker sends rank 0 all it has, by destination, and gets what is for it, by source.  Rank 0 takes
one destination after the other; what it passes on it keeps only until the kernel has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Sequence

import numpy as np

from rlxdeploy.runtime.algorithm.moves import Collect, Member, Moves, Receive, Send, as_bytes
from rlxdeploy.runtime.algorithm.pairwise import COUNT, check_counts, route
from rlxdeploy.runtime.algorithm.tags import Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Arrays = Sequence["NDArray[Any]"]
_Counts = Sequence[Sequence[int]]


def all_to_all(member: Member, data: NDArray[Any], out: NDArray[Any]) -> Moves:
    """Send the i-th equal part of *data* to rank i; *out* holds what came, by rank."""
    sent = data.reshape(member.world, data.size // member.world)
    got = out.reshape(sent.shape)
    counts = [[sent.shape[1]] * member.world] * member.world
    yield from _exchange(member, Tag.ALL_TO_ALL, list(sent), list(got), counts)


def all_to_all_v(member: Member, parts: _Arrays, got: List[NDArray[Any]], most: int) -> Moves:
    """Send parts[i] to rank i; *got* becomes what came, by rank: counts first, then elements.

    *most* is how many elements go into a message.
    """
    world, dtype = member.world, parts[0].dtype
    table = np.zeros((world, world), COUNT)
    table[member.rank] = [part.size for part in parts]
    yield from _spread_counts(member, table)
    counts = table.tolist()
    for rank in member.others:
        check_counts(rank, counts[rank], most)
    got[:] = [np.empty(row[member.rank], dtype) for row in counts]
    yield from _exchange(member, Tag.ALL_TO_ALL_V, parts, got, counts)


def ppermute(
    member: Member, data: NDArray[Any], out: NDArray[Any], pairs: Sequence[Sequence[int]]
) -> Moves:
    """Send *data* to this rank's destination; *out* becomes what its source sends."""
    if member.rank == 0:
        yield from _permute_all(data, out, pairs)
        return
    source, to = route(member.rank, pairs)
    if source == member.rank:
        out[...] = data
        return
    if to is not None:
        yield Send(0, Tag.PPERMUTE, as_bytes(data))
    if source is not None:
        yield Receive(0, Tag.PPERMUTE, as_bytes(out))


def _permute_all(data: NDArray[Any], out: NDArray[Any], pairs: Sequence[Sequence[int]]) -> Moves:
    for source, to in pairs:
        if source == to:
            if to == 0:
                out[...] = data
        elif source == 0:
            yield Send(to, Tag.PPERMUTE, as_bytes(data))
        else:
            passed = np.empty_like(data) if to else out
            yield Receive(source, Tag.PPERMUTE, as_bytes(passed))
            if to:
                yield Send(to, Tag.PPERMUTE, as_bytes(passed))


def _spread_counts(member: Member, table: NDArray[Any]) -> Moves:
    """Fill *table*, of which each rank has its own row: for rank 0 all, else the own column."""
    tag, rank = Tag.ALL_TO_ALL_V, member.rank
    if rank:
        column = np.empty(member.world, COUNT)
        yield Send(0, tag, as_bytes(table[rank].copy()))
        yield Receive(0, tag, as_bytes(column))
        table[:, rank] = column
        return
    yield Collect(tuple(Receive(each, tag, as_bytes(table[each])) for each in member.others))
    for each in member.others:
        yield Send(each, tag, as_bytes(table[:, each].copy()))


def _exchange(member: Member, tag: Tag, sent: _Arrays, got: _Arrays, counts: _Counts) -> Moves:
    """Exchange what the *counts* from rank to rank say; a worker knows those of its own only."""
    got[member.rank][...] = sent[member.rank]
    if member.rank == 0:
        for to in range(member.world):
            yield from _serve(to, member, tag, (sent, got), counts)
        return
    for to in member.others:
        yield Send(0, tag, as_bytes(sent[to]))
    for source in member.others:
        yield Receive(0, tag, as_bytes(got[source]))


def _serve(to: int, member: Member, tag: Tag, own: Sequence[_Arrays], counts: _Counts) -> Moves:
    """Collect, as rank 0, what is for rank *to*, and pass it on."""
    sent, got = own
    sources = [source for source in member.others if source != to]
    if to == 0:
        yield Collect(tuple(Receive(each, tag, as_bytes(got[each])) for each in sources))
        return
    passed = [np.empty(counts[source][to], sent[0].dtype) for source in sources]
    yield Collect(tuple(Receive(each, tag, as_bytes(into)) for each, into in zip(sources, passed)))
    for part in (sent[to], *passed):
        yield Send(to, tag, as_bytes(part))
