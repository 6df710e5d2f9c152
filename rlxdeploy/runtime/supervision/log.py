"""The log of one rank: plain lines as the process wrote them, bounded on disk."""

import os
from datetime import datetime, timezone
from pathlib import Path

# Two files of this size hold days of a chatty trainer's output and fit on the smallest disk.
LIMIT = 8 << 20


class BoundedLog:
    """Append to *path*; at *limit* bytes the file becomes `<path>.1` and a new one begins.

    Our own standard output and error follow it, so that a traceback of ours is found there too.
    A full disk never stops the rank: what could not be written is counted and said later.
    """

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self.path, self.limit = path, limit
        self._lost = 0
        self._open()

    def write(self, data: bytes) -> None:
        """Append what the process wrote."""
        if self._size and self._size + len(data) > self.limit:
            self._rotate()
        note = f"rlx-supervisor: {self._lost} bytes lost\n".encode() if self._lost else b""
        try:
            self._append(note)
            self._lost = 0
            self._append(data)
        except OSError:
            self._lost += len(data)

    def say(self, text: str) -> None:
        """Append a line of the supervisor's own, with the time."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        start = b"" if self._at_line_start else b"\n"
        self.write(start + f"rlx-supervisor {now}: {text}\n".encode())

    def _append(self, data: bytes) -> None:
        while data:
            count = os.write(self._file, data)
            self._size += count
            self._at_line_start = data[count - 1 : count] == b"\n"
            data = data[count:]

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self.path, flags, 0o600)
        self._file, self._size, self._at_line_start = file, os.fstat(file).st_size, True

    def _rotate(self) -> None:
        full = self._file
        try:
            self.path.rename(f"{self.path}.1")
            self._open()
        except OSError:
            return
        os.close(full)
        self.take_standard_streams()

    def take_standard_streams(self) -> None:
        """Have standard output and error end in this log."""
        os.dup2(self._file, 1)
        os.dup2(self._file, 2)
