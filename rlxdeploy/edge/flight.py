"""The connects in flight of a scan."""

import selectors
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Try:
    """One connect in flight; *deadline* is a value of `time.monotonic()`."""

    number: int
    port: int
    socket: socket.socket
    deadline: float


class Flight:
    """The connects in flight, the oldest first."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._tries: dict[int, Try] = {}
        self._selector = selectors.DefaultSelector()

    def __len__(self) -> int:
        return len(self._tries)

    @property
    def first_deadline(self) -> float:
        """The deadline of the oldest; there has to be one."""
        return next(iter(self._tries.values())).deadline

    def add(self, one: Try) -> None:
        """Watch a connect whose deadline is no earlier than any other's."""
        self._tries[one.socket.fileno()] = one
        self._selector.register(one.socket, selectors.EVENT_WRITE, one)

    def answered(self, wait: float) -> Iterator[Try]:
        """Yield those that are decided; whoever takes one has to drop it."""
        for key, _ in self._selector.select(max(0.0, wait)):
            yield key.data

    def expired(self, now: float) -> list[Try]:
        """Return those whose deadline has passed by *now*."""
        late = []
        for one in self._tries.values():
            if one.deadline > now:
                break
            late.append(one)
        return late

    def drop(self, one: Try) -> None:
        """Close one and watch it no more."""
        self._selector.unregister(one.socket)
        del self._tries[one.socket.fileno()]
        one.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._tries.values():
            one.socket.close()
        self._selector.close()
