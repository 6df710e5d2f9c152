"""How fast the links are: for each pair of linked ranks, latency and bandwidth one way."""

from __future__ import annotations

import time
from typing import Callable, Iterator, Tuple

import numpy as np

from rlxdeploy.runtime.group import ProcessGroup

_TAG = 1
_SMALL_BYTES, _PINGS, _WARM_UP = 8, 500, 50
_BIG_BYTES, _BURSTS = 16 << 20, 4


def bench(group: ProcessGroup, report: Callable[[str], None]) -> None:
    """Measure pair after pair while the others wait; the lower rank of a pair reports."""
    for low, high in _pairs(group):
        if group.rank == low:
            latency, bandwidth = _measure(group, high)
            report(
                f"rank {low} to rank {high}: latency {latency * 1e6:.1f} us, "
                f"bandwidth {bandwidth / 1e9:.2f} GB/s"
            )
        elif group.rank == high:
            _answer(group, low)
        group.barrier()


def _pairs(group: ProcessGroup) -> Iterator[Tuple[int, int]]:
    """Yield the linked pairs, the same on every rank."""
    for low in range(group.world):
        for high in range(low + 1, group.world):
            if low == 0 or group.fully_linked:
                yield low, high


def _measure(group: ProcessGroup, peer: int) -> Tuple[float, float]:
    small, big = np.zeros(_SMALL_BYTES, np.uint8), np.ones(_BIG_BYTES, np.uint8)
    rounds = []
    for _ in range(_WARM_UP + _PINGS):
        start = time.perf_counter()
        group.send(peer, _TAG, small)
        group.recv(peer, _TAG, small)
        rounds.append(time.perf_counter() - start)
    latency = sorted(rounds[_WARM_UP:])[_PINGS // 2] / 2
    bursts = []
    for _ in range(_BURSTS):
        start = time.perf_counter()
        group.send(peer, _TAG, big)
        group.recv(peer, _TAG, small)
        bursts.append(time.perf_counter() - start - latency)
    return latency, _BIG_BYTES / min(bursts)


def _answer(group: ProcessGroup, peer: int) -> None:
    small, big = np.zeros(_SMALL_BYTES, np.uint8), np.zeros(_BIG_BYTES, np.uint8)
    for _ in range(_WARM_UP + _PINGS):
        group.recv(peer, _TAG, small)
        group.send(peer, _TAG, small)
    for _ in range(_BURSTS):
        group.recv(peer, _TAG, big)
        group.send(peer, _TAG, small)
