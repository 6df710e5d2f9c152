"""What we ask of the kernel for a connection, and what it knows about one.

TCP_USER_TIMEOUT is not used: since Linux 5.11 it also ends a connection whose peer is alive but
has not read for that long, which is what a rank that computes does.  Keepalive finds a vanished
host while nothing is under way, `vanished` while something is.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import select
import socket
import struct
import sys
import termios
from fcntl import ioctl

from rlxdeploy.runtime.limits import Limits

# Linux tells the end of a stream apart from the data before it; elsewhere poll tells only of a
# connection that is closed both ways.
ENDED = getattr(select, "POLLRDHUP", 0)

_INFO_BYTES = 60
# The state in its first byte.
_TCP_CLOSE = 7
# Zero-window probes that a live host has answered leave a count of one at most.
_UNANSWERED = 2


def tune(sock: socket.socket, peer_timeout: float, limits: Limits) -> None:
    """Make *sock* prompt and non-blocking, and let the kernel notice a host that has vanished."""
    sock.settimeout(0)
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    shrink(sock, limits)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in (
        ("TCP_KEEPIDLE", peer_timeout * 0.4),
        ("TCP_KEEPINTVL", peer_timeout * 0.2),
    ):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), max(1, int(seconds)))
    if hasattr(socket, "TCP_KEEPCNT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


def shrink(sock: socket.socket, limits: Limits) -> None:
    """Give *sock* the kernel buffers that *limits* ask for; must come before it is connected."""
    if limits.socket_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.socket_buffer)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limits.socket_buffer)


def unsent(sock: socket.socket) -> int:
    """Return how many bytes the peer's kernel has yet to acknowledge; 0 where nobody can tell.

    After a reset it never will, although the kernel here goes on counting them.
    """
    answer = bytearray(4)
    try:
        ioctl(sock.fileno(), termios.TIOCOUTQ, answer)
        (count,) = struct.unpack("i", answer)
        return 0 if count and _is_over(sock) else int(count)
    except OSError:
        return 0


def _is_over(sock: socket.socket) -> bool:
    """Whether the connection has ended both ways, in order or by a reset."""
    if sys.platform != "linux":
        return False
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _TCP_CLOSE


def vanished(sock: socket.socket, seconds: float) -> bool:
    """Whether the peer's kernel has left what we sent unanswered for *seconds*."""
    if sys.platform != "linux":
        return False
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    retransmits, probes = info[2], info[3]
    (unacknowledged,) = struct.unpack_from("I", info, 24)
    (heard_ms,) = struct.unpack_from("I", info, 56)
    asking = probes >= _UNANSWERED or (unacknowledged and retransmits)
    return bool(asking) and heard_ms >= seconds * 1000


def why(error: OSError) -> str:
    """Say what *error* means for a link."""
    return {
        errno.ECONNREFUSED: "connection refused",
        errno.ETIMEDOUT: "the host does not answer",
        errno.EHOSTUNREACH: "no route to the host",
        errno.ENETUNREACH: "no route to the network",
        errno.ECONNRESET: "it reset the connection",
        errno.EPIPE: "it closed the connection",
    }.get(error.errno or 0) or os.strerror(error.errno or 0)


def is_loopback(host: str) -> bool:
    """Whether a numeric address is one of this host's own loopback."""
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback


def is_open(sock: socket.socket) -> bool:
    """Whether the peer has neither closed nor reset the connection, whatever it sent before."""
    poll = select.poll()
    poll.register(sock, ENDED)
    return not poll.poll(0)
