"""Messages that came before anybody asked for them: a queue for each tag."""

from __future__ import annotations

from collections import Counter, deque
from typing import Counter as Counts
from typing import Deque, Dict

from rlxdeploy.runtime.errors import WireError


class Inbox:
    """One peer's messages, *most* bytes in all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._unread = 0
        self._queues: Dict[int, Deque[memoryview]] = {}
        self._unwanted: Counts[int] = Counter()

    def has(self, tag: int) -> bool:
        """Whether a message with *tag* waits."""
        return tag in self._queues

    def expect(self, length: int) -> None:
        """Take note that a message of *length* bytes has begun to come; WireError for too many."""
        if self._unread + length > self._most:
            raise WireError(f"over {self._most} bytes wait that nobody asked for")
        self._unread += length

    def put(self, tag: int, message: memoryview) -> None:
        """Keep a message that was expected, unless it is unwanted."""
        if self._unwanted[tag]:
            self._unwanted[tag] -= 1
            self._unread -= len(message)
        else:
            self._queues.setdefault(tag, deque()).append(message)

    def pop(self, tag: int) -> memoryview:
        """Take out the oldest message with *tag*."""
        queue = self._queues[tag]
        message = queue.popleft()
        if not queue:
            del self._queues[tag]
        self._unread -= len(message)
        return message

    def refuse(self, tag: int) -> None:
        """Throw the next message with *tag* away, now or when it comes."""
        if self.has(tag):
            self.pop(tag)
        else:
            self._unwanted[tag] += 1

    def refuses(self, tag: int) -> bool:
        """Whether the next message with *tag* will be thrown away."""
        return self._unwanted[tag] > 0
