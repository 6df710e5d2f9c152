"""Finding rank 0 of a star at a host that is known: workers ask over UDP where it listens."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from typing import Any, Callable, Tuple, Union

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.errors import WireError
from rlxdeploy.runtime.link.dial import resolve
from rlxdeploy.runtime.link.udp import Background, Until, bind_udp
from rlxdeploy.runtime.wire.beacon import MAX_DATAGRAM, Dialect

# Upstream's pace of asking.
_ASK_S = 0.3
_RESOLVE_S = 3.0
# How soon the answering thread notices that it is to end.
_TURN_S = 0.05
_NONCE_BYTES = 16


class Answerer:
    """Tells whoever asks at UDP *port* that rank 0 listens at *data_port*; raises PortInUse."""

    def __init__(self, port: int, data_port: int, dialect: Dialect) -> None:
        self._dialect, self._data_port = dialect, data_port
        self._sock = bind_udp(port, shared=False)
        self._thread = Background("answer", self._answer)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._thread.stop()
        self._sock.close()

    def _answer(self, _wait: Callable[[float], object]) -> None:
        if not select.select([self._sock], [], [], _TURN_S)[0]:
            return
        with contextlib.suppress(OSError, WireError):
            data, asker = self._sock.recvfrom(MAX_DATAGRAM)
            self._sock.sendto(self._dialect.answer(data, self._data_port), asker)


def ask(host: str, port: int, dialect: Dialect, until: Until) -> Address:
    """Ask *host* where rank 0 listens, again and again; return *host* with that port.

    Raises JoinTimeout with what came of the last question.
    """
    asked, came = Address(host, port), "it was not asked yet"
    while until.left:
        next_s = time.monotonic() + _ASK_S
        try:
            found = _ask_once(asked, dialect, min(until.deadline, next_s))
        except OSError as error:
            found = error.strerror or str(error)
        if isinstance(found, int):
            return Address(host, found)
        came = f"asked {asked} over UDP: {found}"
        time.sleep(max(0.0, min(until.left, next_s - time.monotonic())))
    raise until.missed({0: came})


def _ask_once(asked: Address, dialect: Dialect, until: float) -> Union[int, str]:
    """Ask once and wait; return the port, or what came instead."""
    family, where = resolve(asked, _RESOLVE_S)
    nonce, came = os.urandom(_NONCE_BYTES).hex(), "no answer"
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.sendto(dialect.query(nonce), where)
        while time.monotonic() < until:
            if not select.select([sock], [], [], max(0.0, until - time.monotonic()))[0]:
                break
            try:
                return dialect.read_answer(_receive(sock), nonce)
            except WireError as error:
                came = f"an answer that is none: {error}"
    return came


def _receive(sock: socket.socket) -> bytes:
    """Take an answer from whoever sends one: behind a NAT it comes from another address."""
    received: Tuple[bytes, Any] = sock.recvfrom(MAX_DATAGRAM)
    return received[0]
