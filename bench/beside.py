"""A contender beside a thread of the same process that computes in Python without a pause."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bench.ours import Deed
from bench.turns import Peer


class Beside:
    """*peer* while such a thread runs, with another switch interval if one is given."""

    def __init__(self, peer: Peer, interval_s: float | None = None) -> None:
        self._peer, self._interval_s = peer, interval_s

    def deed(self, op: str, dtype: str, size: int) -> Deed | None:
        """Return what does the i-th *op*."""
        return self._peer.deed(op, dtype, size)

    @contextmanager
    def around(self) -> Iterator[None]:
        """Let the thread run meanwhile."""
        before, over = sys.getswitchinterval(), threading.Event()
        thread = threading.Thread(target=_compute, args=(over,))
        if self._interval_s is not None:
            sys.setswitchinterval(self._interval_s)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            sys.setswitchinterval(before)


def _compute(over: threading.Event) -> None:
    number = 1
    while not over.is_set():
        for _ in range(1000):
            number = number * 31 % 65521
