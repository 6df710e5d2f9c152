"""Ranks that are processes of their own and start at once: forked from one that has imported all.

That one (`tests/runtime/deeds.py`) holds no socket of any group: what a rank has open ends with it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

from tests.runtime.cluster import PATIENCE_S

# An order is a few variables and words.
_ORDER_BYTES = 1 << 16
_Order = Mapping[str, Any]


class Outcome(NamedTuple):
    """How a rank ended: the class of its error, empty for none, its text and its attributes."""

    error: str
    text: str
    values: Dict[str, Any]


class Forked:
    """A rank as seen from the test: what it says, line by line, and how to strike it."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid, self.lines = pid, []  # type: int, List[str]
        self._pipe, self._rest, self._open = pipe, b"", True

    def says(self, start: str) -> str:
        """Wait for a line that begins with *start* and return it."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            for line in self.lines:
                if line.startswith(start):
                    return line
            assert self._open, f"rank ended without {start!r}: {self.lines}"
            self._read(deadline, start)

    def end(self) -> Optional[Outcome]:
        """Wait until the rank has ended; return what it said of that, None if it could not."""
        deadline = time.monotonic() + PATIENCE_S
        while self._open:
            self._read(deadline, "its end")
        last = self.lines[-1] if self.lines else ""
        return Outcome(**json.loads(last)) if last.startswith('{"error"') else None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def close(self) -> None:
        """See to it that the rank is no more."""
        self.signal(signal.SIGKILL)
        os.close(self._pipe)

    def _read(self, deadline: float, awaited: str) -> None:
        left = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([self._pipe], [], [], left)
        assert ready, f"waited in vain for {awaited!r}: {self.lines}"
        heard = os.read(self._pipe, _ORDER_BYTES)
        self._open = bool(heard)
        *whole, self._rest = (self._rest + heard).split(b"\n")
        self.lines += [line.decode() for line in whole]


class Template:
    """The process that ranks are forked from, and all ranks that were."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.runtime.deeds", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                # A process with threads of a library must not be forked.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            )
        self._orders.settimeout(PATIENCE_S)
        self._forked: List[Forked] = []

    def fork(self, order: _Order) -> Forked:
        """Start a rank that carries out *order*."""
        ours, theirs = os.pipe()
        socket.send_fds(self._orders, [json.dumps(order).encode()], [theirs])
        os.close(theirs)
        self._forked.append(Forked(int(self._orders.recv(64)), ours))
        return self._forked[-1]

    def clear(self) -> None:
        """End all ranks."""
        while self._forked:
            self._forked.pop().close()

    def close(self) -> None:
        """End all ranks and the process they came from."""
        self.clear()
        self._orders.close()
        self._process.wait(PATIENCE_S)


def serve(orders: socket.socket, obey: Callable[[_Order], None]) -> None:
    """Fork a process for each order, which speaks into the pipe that came with it.

    Ends all of them once the other end of *orders* is closed.
    """
    forked: List[int] = []
    while True:
        order, pipes, _, _ = socket.recv_fds(orders, _ORDER_BYTES, 1)
        if not order:
            break
        forked.append(os.fork())
        if not forked[-1]:
            orders.close()
            _be_a_rank(pipes[0], json.loads(order), obey)
        os.close(pipes[0])
        orders.send(str(forked[-1]).encode())
    # Nobody has been waited for so far, so that no number has become another process's.
    for pid in forked:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _be_a_rank(pipe: int, order: _Order, obey: Callable[[_Order], None]) -> None:
    code = 1
    try:
        os.dup2(pipe, 1)
        os.dup2(pipe, 2)
        os.close(pipe)
        obey(order)
        code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
