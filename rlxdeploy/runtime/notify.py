"""What a service tells its manager: datagrams of `NAME=value` lines to NOTIFY_SOCKET.

systemd's protocol, which our supervisor listens to as well.  A name that begins with `@` is an
abstract socket.
"""

from __future__ import annotations

import os
import socket
from typing import Mapping, Optional


class Notifier:
    """Sends notifications, or does nothing where nobody asked for any."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        path = environ.get("NOTIFY_SOCKET", "")
        self._address = f"\0{path[1:]}" if path.startswith("@") else path
        self.watchdog_s = _watchdog(environ)

    def send(self, **fields: str) -> Optional[str]:
        """Send the fields; return why the manager could not be told, if it could not."""
        if not self._address:
            return None
        text = "".join(f"{name}={' '.join(value.split())}\n" for name, value in fields.items())
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.settimeout(1.0)
            try:
                sock.sendto(text.encode(), self._address)
            except OSError as error:
                return f"NOTIFY_SOCKET {self._address!r}: {error}"
        return None


def _watchdog(environ: Mapping[str, str]) -> Optional[float]:
    """Return after how many silent seconds the manager ends this process; None if it does not."""
    usec, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not usec.isdecimal() or not int(usec) or (pid and pid != str(os.getpid())):
        return None
    return int(usec) / 1e6
