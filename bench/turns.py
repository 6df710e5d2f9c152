"""Contenders by turns, block after block: what disturbs the machine falls on all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from bench.ours import Deed

# A block is this long, so that a round of all peers is short against what disturbs the machine.
_BLOCK_S = 0.04
_MOST, _LEAST = 2000, 3
# A pass takes every case, so that a bad minute is a third of each case and not all of one.
_PASSES = 3
# Cases this large have one round a pass: they last, and are steady.
_LONG_BYTES = 64 << 20


class Peer(Protocol):
    """One contender, on one rank."""

    def around(self) -> AbstractContextManager[object]:
        """Return what a block of operations happens in."""

    def deed(self, op: str, dtype: str, size: int) -> Deed | None:
        """Return what does the i-th *op* on arrays of *size* bytes; None where it cannot."""


class Meeting(Protocol):
    """Lets the ranks begin together and agree."""

    def meet(self) -> None:
        """Wait for all, with nobody left spinning in another's barrier."""

    def agree(self, number: int) -> int:
        """Return rank 0's *number*."""

    def after(self, name: str) -> None:
        """Do what a block of contender *name* leaves to be done."""


def measure(
    peers: Mapping[str, Peer], cases: Sequence[Sequence[Any]], rounds: int, meeting: Meeting
) -> list[tuple[Sequence[Any], dict[str, list[float]]]]:
    """Return each case with the seconds that one operation of each peer took in each round."""
    seconds: list[dict[str, list[float]]] = [{name: [] for name in peers} for _ in cases]
    for _ in range(_PASSES):
        for case, so_far in zip(cases, seconds, strict=True):
            each_pass = 1 if case[2] >= _LONG_BYTES else max(1, rounds // _PASSES)
            for name, more in _measured(peers, case, each_pass, meeting).items():
                so_far[name] += more
    return list(zip(cases, seconds, strict=True))


def _measured(
    peers: Mapping[str, Peer], case: Sequence[Any], rounds: int, meeting: Meeting
) -> dict[str, list[float]]:
    op, dtype, size = case
    deeds = {name: peer.deed(op, dtype, size) for name, peer in peers.items()}
    able = {name: deed for name, deed in deeds.items() if deed is not None}
    counts = {name: _count(peers[name], deed, meeting) for name, deed in able.items()}
    seconds: dict[str, list[float]] = {name: [] for name in peers}
    order = list(able)
    for turn in range(rounds):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            meeting.meet()
            seconds[name].append(_block(peers[name], able[name], counts[name]))
            meeting.after(name)
    return seconds


def _block(peer: Peer, deed: Deed, count: int) -> float:
    with peer.around():
        deed(0)
        start = time.perf_counter()
        for i in range(count):
            deed(i)
        return (time.perf_counter() - start) / count


def _count(peer: Peer, deed: Deed, meeting: Meeting) -> int:
    """Return how many operations fill a block, the same on every rank."""
    with peer.around():
        for i in range(_LEAST):
            deed(i)
    took = _block(peer, deed, _LEAST)
    return meeting.agree(max(_LEAST, min(_MOST, int(_BLOCK_S / took))))
