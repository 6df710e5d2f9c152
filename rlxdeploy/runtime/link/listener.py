"""The socket a rank is dialled at, and who holds the port if it is taken."""

from __future__ import annotations

import errno
import ipaddress
import socket
import sys
from pathlib import Path
from typing import Any, Iterator, Optional, Tuple

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.errors import PortInUse, RefusedError
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.sockets import is_loopback, shrink, why

# The table of /proc/net, and the state in it that keeps others out.
_TCP, _UDP = ("tcp", "0A"), ("udp", "07")
# A rank must find a place in the queue beside a scan.
_BACKLOG = 1024


def listen(address: Address, limits: Limits, *, open_net: bool) -> socket.socket:
    """Listen at exactly *address*; RefusedError off the loopback unless *open_net* is allowed.

    Raises PortInUse with the holder where /proc tells.
    """
    try:
        family, _, _, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise RefusedError(f"cannot listen at {address}: {error}") from error
    if not open_net and not is_loopback(str(where[0])):
        raise RefusedError(
            f"cannot listen at {address}: the rlx wire has no authentication, so any address but "
            'the loopback needs RLX_SECURITY=none (security = "none") written'
        )
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        _bind(sock, where, limits)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                str(where[0]), address.port, holder(str(where[0]), address.port)
            ) from error
        raise RefusedError(f"cannot listen at {address}: {why(error)}") from error
    return sock


def _bind(sock: socket.socket, where: Tuple[Any, ...], limits: Limits) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    shrink(sock, limits)
    sock.bind(where)
    sock.listen(_BACKLOG)
    sock.settimeout(0)


def holder(host: str, port: int, *, udp: bool = False) -> Optional[str]:
    """Return `NAME (pid N)` of a process that keeps others from *port*, where /proc shows it."""
    inodes = set(_holding(_as_proc_writes(host), port, *(_UDP if udp else _TCP)))
    for process in Path("/proc").glob("[0-9]*"):
        if inodes & set(_sockets(process)):
            return f"{_name(process)} (pid {process.name})"
    return None


def _as_proc_writes(host: str) -> str:
    """Return an address as /proc/net does: each 32-bit word in the host's own byte order."""
    packed = ipaddress.ip_address(host.partition("%")[0]).packed
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)


def _holding(address: str, port: int, protocol: str, state: str) -> Iterator[str]:
    """Yield the sockets in *state* on *port* at *address*, or where either is a wildcard."""
    for table in (f"/proc/net/{protocol}", f"/proc/net/{protocol}6"):
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            at, _, number = fields[1].partition(":")
            clash = at == address or not int(at, 16) or not int(address, 16)
            if clash and fields[3] == state and int(number, 16) == port:
                yield f"socket:[{fields[9]}]"


def _sockets(process: Path) -> Iterator[str]:
    try:
        for entry in (process / "fd").iterdir():
            yield str(entry.readlink())
    except OSError:
        return


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "a process"
