"""What is still to be sent to one peer, in order, and how much of it is in memory lent to us."""

from __future__ import annotations

import socket
from collections import deque
from typing import Deque

# Below this a copy is cheaper than a second buffer in the system call.
_SMALL = 1024


class Outbox:
    """The bytes that the kernel has not taken yet."""

    def __init__(self) -> None:
        self._pieces: Deque[memoryview] = deque()
        self._lent = 0

    def __len__(self) -> int:
        """Return how many pieces wait."""
        return len(self._pieces)

    @property
    def lent(self) -> bool:
        """Whether something waits whose sender waits too."""
        return self._lent > 0

    def add(self, header: bytes, data: memoryview, *, lent: bool) -> None:
        """Queue a message; if *lent*, its sender waits until it has gone."""
        if len(data) <= _SMALL:
            self._pieces.append(memoryview(header + data))
        else:
            self._pieces.extend((memoryview(header), data))
        if lent:
            self._lent = len(self._pieces)

    def send(self, sock: socket.socket) -> bool:
        """Send what the kernel takes; return whether anything went.  Raises OSError."""
        pieces, moved = self._pieces, False
        while pieces:
            try:
                first = (pieces[0], pieces[1]) if len(pieces) > 1 else (pieces[0],)
                left = sock.sendmsg(first)
            except BlockingIOError:
                break
            moved = True
            while pieces and left >= len(pieces[0]):
                left -= len(pieces.popleft())
                self._lent = max(0, self._lent - 1)
            if left:
                pieces[0] = pieces[0][left:]
        return moved

    def clear(self) -> None:
        """Forget everything."""
        self._pieces.clear()
        self._lent = 0
