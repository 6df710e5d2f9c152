"""Which congestion control a connection uses.

Within one host there is nothing to control, and bbr, the default on many systems, paces what it
sends to a fraction of what memory can do.  reno is compiled into every Linux kernel and needs no
privilege.  It must be chosen before the connection exists, as pacing, once begun, stays: so a
listener chooses it for all who come, and those from other hosts are given the default again.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any, Tuple

_NAME_BYTES = 16


def is_here(where: Tuple[Any, ...], family: int) -> bool:
    """Whether a socket address is one of this host's own."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((where[0], 0, *where[2:]))
        except OSError:
            return False
    return True


def prefer_local(sock: socket.socket) -> None:
    """Choose what is fastest within a host, where the kernel lets us."""
    with contextlib.suppress(OSError, AttributeError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


def restore_default(sock: socket.socket) -> None:
    """Give an accepted connection what it would have without `prefer_local`."""
    with contextlib.suppress(OSError, AttributeError):
        with socket.socket(sock.family, socket.SOCK_STREAM) as fresh:
            usual = fresh.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_BYTES)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, usual.rstrip(b"\0"))
