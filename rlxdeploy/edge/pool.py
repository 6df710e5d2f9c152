"""Many hosts at once: a bounded number of threads, and a deadline for each host.

A thread cannot be killed.  One that misses its host's deadline is left behind (it is a daemon, and
its own waits have deadlines too) and its place is given to the next host.
"""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rlxdeploy.errors import HostError
from rlxdeploy.model.outcome import Outcomes

Item = TypeVar("Item")
T = TypeVar("T")

# Work that ends by its own deadline gets this long to say so before it is given up.
_GRACE_S = 1.0


@dataclass(frozen=True, slots=True)
class Pool:
    """At most *at_once* hosts together, *allowance* seconds for each.

    Once *stop* is set no further host is begun; those that were run to their end or deadline.
    """

    at_once: int
    allowance: float
    stop: threading.Event | None = None

    def on_hosts(
        self, work: Callable[[Item, float], T], items: Mapping[str, Item], doing: str
    ) -> Outcomes[T]:
        """Do *work* for the item of each host name and return the outcomes in their order.

        *work* gets the item and its deadline, a value of `time.monotonic()`.  A HostError is that
        host's outcome, and so is a missed deadline; any other exception is a bug and raised here.
        """
        turn = _Turn[T](doing)
        for name, item in items.items():
            while len(turn.running) >= self.at_once:
                turn.collect()
            if self.stop is not None and self.stop.is_set():
                turn.failed[name] = HostError(name, doing, "not begun: interrupted")
            else:
                turn.begin(name, work, item, time.monotonic() + self.allowance)
        while turn.running:
            turn.collect()
        return Outcomes(_in_order(turn.done, items), _in_order(turn.failed, items))


@dataclass(slots=True)
class _Turn(Generic[T]):
    """One round over the hosts: *running* holds the deadline of each host that was begun."""

    doing: str
    running: dict[str, float] = field(default_factory=dict)
    done: dict[str, T] = field(default_factory=dict)
    failed: dict[str, HostError] = field(default_factory=dict)
    said: queue.SimpleQueue[tuple[str, T | BaseException]] = field(
        default_factory=queue.SimpleQueue
    )

    def begin(
        self, name: str, work: Callable[[Item, float], T], item: Item, deadline: float
    ) -> None:
        def run() -> None:
            try:
                self.said.put((name, work(item, deadline)))
            except BaseException as error:  # noqa: BLE001  # raised where the answers are collected
                self.said.put((name, error))

        self.running[name] = deadline
        threading.Thread(target=run, name=f"host {name}", daemon=True).start()

    def collect(self) -> None:
        """Take one answer, or give up on the hosts whose deadline has passed."""
        left = min(self.running.values()) + _GRACE_S - time.monotonic()
        try:
            name, answer = self.said.get(timeout=max(0.0, left))
        except queue.Empty:
            self._give_up(time.monotonic() - _GRACE_S)
            return
        if self.running.pop(name, None) is None:
            return
        if isinstance(answer, HostError):
            self.failed[name] = answer
        elif isinstance(answer, BaseException):
            raise answer
        else:
            self.done[name] = answer

    def _give_up(self, before: float) -> None:
        for name in [name for name, deadline in self.running.items() if deadline <= before]:
            del self.running[name]
            self.failed[name] = HostError(name, self.doing, "did not finish by its deadline")


def _in_order(answers: Mapping[str, T], order: Mapping[str, Item]) -> dict[str, T]:
    return {name: answers[name] for name in order if name in answers}
