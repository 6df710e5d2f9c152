"""What whoever answers a dial of the `rlx` wire may say first: nothing, or a frame of that rank."""

from __future__ import annotations

import socket
from typing import Optional

from rlxdeploy.runtime.errors import WireError
from rlxdeploy.runtime.wire.frame import HEADER_BYTES, parse_header


def objection(sock: socket.socket, rank: int) -> Optional[str]:
    """Return what shows that the other end of *sock* is not *rank*; None where nothing does.

    What it has said stays there to be read.
    """
    try:
        said = sock.recv(HEADER_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except OSError:
        return None
    return _fault(said, rank) if said else None


def _fault(said: bytes, rank: int) -> Optional[str]:
    try:
        header = parse_header(said.ljust(HEADER_BYTES, b"\0"))
    except WireError:
        return f"it does not speak the rlx wire (it sent {said.hex()})"
    if len(said) == HEADER_BYTES and header.source != rank:
        return f"it is rank {header.source}"
    return None
