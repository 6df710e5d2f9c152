"""The receiving end of NOTIFY_SOCKET; for its protocol see sd_notify(3)."""

import contextlib
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Dict, Iterator

# sockaddr_un(7) holds 108 bytes on Linux, 104 on macOS, with the closing zero.
LONGEST_PATH = 100
LONGEST_MESSAGE = 65536


class NotifySocket:
    """A datagram socket beside *beside*, or in a private folder where that path is too long."""

    def __init__(self, beside: Path) -> None:
        self._folder = ""
        path = beside.with_suffix(".notify")
        if len(os.fsencode(path)) > LONGEST_PATH:
            self._folder = tempfile.mkdtemp(prefix="rlx-", dir="/tmp")
            path = Path(self._folder) / "notify"
        path.unlink(missing_ok=True)
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(0)
        self._socket.bind(str(path))

    def fileno(self) -> int:
        """Return the descriptor, for a selector."""
        return self._socket.fileno()

    def messages(self) -> Iterator[Dict[str, str]]:
        """Yield what has arrived, one mapping of assignments a datagram."""
        while True:
            try:
                data = self._socket.recv(LONGEST_MESSAGE)
            except BlockingIOError:
                return
            lines = data.decode("utf-8", "replace").splitlines()
            yield {name: value for name, _, value in (line.partition("=") for line in lines)}

    def close(self) -> None:
        """Leave nothing behind."""
        self._socket.close()
        with contextlib.suppress(OSError):
            self.path.unlink()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
