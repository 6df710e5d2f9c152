"""Proof that a group computes what it should: every element of every collective, on every rank.

Rank r fills element i with an integer in 1..1024 that depends on a nonce of rank 0, on r and on i.
Sums over up to 16,384 ranks are then exact in float32 whatever the order, no contribution is
zero, and a dropped, doubled, shifted or swapped one changes nearly every element.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rlxdeploy.runtime.errors import PlanMismatch, SelfCheckFailed, ranks_text
from rlxdeploy.runtime.group import ProcessGroup

if TYPE_CHECKING:
    from numpy.typing import NDArray

ELEMENTS = 1_000_003
_PLAN_BYTES = 192
_MIX = np.uint32(2654435761)


class Wishes(NamedTuple):
    """What a rank asks of all: a sign of life every so many seconds (0: none), a benchmark."""

    watchdog_s: float = 0.0
    bench: bool = False


class Checked(NamedTuple):
    """What all ranks have agreed on; *beat_s* is 0 where nobody wants a regular barrier."""

    epoch: str
    digest: str
    beat_s: float
    bench: bool


class _Budget:
    """The time left for the whole check."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    @property
    def left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


def self_check(group: ProcessGroup, plan: str, wishes: Wishes, deadline: float) -> Checked:
    """Check the group and agree on what follows; every rank has passed when this returns.

    *deadline* is on the monotonic clock.  Raises SelfCheckFailed, PlanMismatch where *plan*
    differs between ranks, and what the group's calls raise.
    """
    budget = _Budget(deadline)
    nonce = np.frombuffer(os.urandom(16), np.uint8).copy()
    group.broadcast(nonce, timeout=budget.left)
    _compare_plans(group, plan, budget)
    asked = np.array([wishes.watchdog_s, wishes.bench], np.float64)
    wanted = group.all_gather(asked, timeout=budget.left)
    digest = _check_collectives(group, int.from_bytes(nonce[:4].tobytes(), "little"), budget)
    _agree(group, digest, budget)
    group.barrier(timeout=budget.left)
    watchdogs = wanted[:, 0][wanted[:, 0] > 0]
    return Checked(
        epoch=nonce.tobytes().hex(),
        digest=digest.hex(),
        beat_s=float(watchdogs.min()) / 3 if watchdogs.size else 0.0,
        bench=bool(wanted[:, 1].any()),
    )


def contribution(nonce: int, rank: int, count: int) -> NDArray[Any]:
    """Return what *rank* puts in: *count* float32 integers in 1..1024."""
    index = np.arange(count, dtype=np.uint32)
    index += np.uint32(nonce)
    index *= _MIX
    index ^= index >> np.uint32(15)
    index *= np.uint32(2 * rank + 0x9E3779B1 & 0xFFFFFFFF)
    index >>= np.uint32(22)
    filled: NDArray[Any] = index.astype(np.float32)
    filled += 1
    return filled


def _compare_plans(group: ProcessGroup, plan: str, budget: _Budget) -> None:
    """Raise PlanMismatch on every rank where one was started by another plan."""
    own = np.zeros(_PLAN_BYTES, np.uint8)
    text = plan.encode()[:_PLAN_BYTES]
    own[: len(text)] = np.frombuffer(text, np.uint8)
    plans = [_text(row) for row in group.all_gather(own, timeout=budget.left)]
    others = {rank: theirs for rank, theirs in enumerate(plans) if theirs != plans[group.rank]}
    if others:
        raise PlanMismatch(plans[group.rank], others)


def _text(row: NDArray[Any]) -> str:
    text: bytes = row.tobytes().rstrip(b"\0")
    return text.decode(errors="replace")


def _check_collectives(group: ProcessGroup, nonce: int, budget: _Budget) -> bytes:
    """Check all three and return the digest of what this rank saw."""
    root, share = group.world - 1, -(-ELEMENTS // group.world)
    mine = contribution(nonce, group.rank, ELEMENTS)
    from_root = contribution(nonce, root, ELEMENTS)
    shares: NDArray[Any] = np.empty((group.world, share), np.float64)
    total: NDArray[Any] = np.zeros(ELEMENTS, np.float64)
    for rank in range(group.world):
        filled = contribution(nonce, rank, ELEMENTS)
        total += filled
        shares[rank] = filled[:share]
    spread = mine.copy() if group.rank == root else np.zeros(ELEMENTS, np.float32)
    group.broadcast(spread, root, timeout=budget.left)
    results = (
        ("broadcast", spread, from_root.astype(np.float64)),
        ("all_reduce", group.all_reduce(mine.copy(), timeout=budget.left), total),
        ("all_gather", group.all_gather(mine[:share], timeout=budget.left), shares),
    )
    seen = hashlib.sha256()
    for op, got, expected in results:
        _compare(group.rank, op, got, expected)
        seen.update(got.tobytes())
    return seen.digest()


def _compare(rank: int, op: str, got: NDArray[Any], expected: NDArray[Any]) -> None:
    wrong = np.flatnonzero(got.astype(np.float64) != expected)
    if wrong.size:
        at = int(wrong[0])
        raise SelfCheckFailed(
            f"self-check on rank {rank}: {op} gave {wrong.size} wrong of {got.size} elements; "
            f"element {at} is {got.flat[at]:g}, not {expected.flat[at]:g}"
        )


def _agree(group: ProcessGroup, digest: bytes, budget: _Budget) -> None:
    digests = group.all_gather(np.frombuffer(digest, np.uint8), timeout=budget.left)
    odd = [rank for rank in range(group.world) if digests[rank].tobytes() != digest]
    if odd:
        raise SelfCheckFailed(f"self-check: {ranks_text(odd)} ended with other bits than this rank")
