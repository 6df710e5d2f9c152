"""Calls to be made at their time unless they are called off, all waited for by one thread.

A thread for each would be four a host, and to start one costs as much as to shake hands.
"""

import heapq
import itertools
import threading
import time
from collections.abc import Callable


class Alarms:
    """Safe to use from many threads; its own is begun with the first call that is due."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._due: list[tuple[float, int]] = []
        self._calls: dict[int, Callable[[], object]] = {}
        self._thread: threading.Thread | None = None

    def at(self, when: float, call: Callable[[], object]) -> int:
        """Have *call* made at *when*, a value of `time.monotonic()`; returns what calls it off."""
        with self._changed:
            number = next(self._numbers)
            self._calls[number] = call
            heapq.heappush(self._due, (when, number))
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._wait, name="alarms", daemon=True)
                self._thread.start()
            elif self._due[0][1] == number:
                self._changed.notify()
        return number

    def call_off(self, number: int) -> None:
        """Have that call not made, if it has not begun."""
        with self._changed:
            self._calls.pop(number, None)

    def _wait(self) -> None:
        with self._changed:
            while True:
                while self._due and self._due[0][1] not in self._calls:
                    heapq.heappop(self._due)
                left = self._due[0][0] - time.monotonic() if self._due else None
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                call = self._calls.pop(heapq.heappop(self._due)[1])
                # It may wait for a connection to end, and others are due.
                threading.Thread(target=call, name="alarm", daemon=True).start()
