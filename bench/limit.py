"""What a bare TCP socket between two ranks can do: nothing over it is faster."""

from __future__ import annotations

import socket
import time

import numpy as np

from rlxdeploy.runtime import ProcessGroup

_BYTES, _PIECE = 1 << 29, 1 << 18
_EXCHANGES, _SMALL = 5000, 40


def raw_limit(group: ProcessGroup, host: str = "127.0.0.1") -> dict[str, float]:
    """Return GB/s one way and the microseconds of an exchange, between ranks 0 and 1.

    Rank 0 listens at *host*.  Within a host the socket uses the congestion control that the native
    wire uses there, else the machine's own.
    """
    prepare = _reno if host.startswith("127.") else _as_it_is
    port = np.zeros(1, np.int64)
    found = {"gbytes": 0.0, "exchange_us": 0.0}
    listener = socket.socket()
    if group.rank == 0:
        prepare(listener)
        listener.bind((host, 0))
        listener.listen()
        port[0] = listener.getsockname()[1]
    group.broadcast(port)
    if group.rank == 0:
        found = _as_reader(listener.accept()[0])
    elif group.rank == 1:
        prepare(listener)
        listener.connect((host, int(port[0])))
        _as_writer(listener)
    listener.close()
    group.barrier()
    return found


def _as_reader(sock: socket.socket) -> dict[str, float]:
    exchange = _exchange(sock)
    piece = bytearray(_PIECE)
    start, left = time.perf_counter(), _BYTES
    while left:
        left -= sock.recv_into(piece, min(left, _PIECE))
    seconds = time.perf_counter() - start
    sock.close()
    return {"gbytes": _BYTES / seconds / 1e9, "exchange_us": exchange * 1e6}


def _as_writer(sock: socket.socket) -> None:
    _exchange(sock)
    piece = bytes(_PIECE)
    for _ in range(_BYTES // _PIECE):
        sock.sendall(piece)


def _exchange(sock: socket.socket) -> float:
    """Send and receive a small message at once, spinning; return the median seconds."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    message, took = bytearray(_SMALL), []
    for _ in range(_EXCHANGES):
        start, got = time.perf_counter(), 0
        sock.send(message)
        while got < _SMALL:
            try:
                got += sock.recv_into(message, _SMALL - got, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
        took.append(time.perf_counter() - start)
    return float(np.median(took))


def _reno(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


def _as_it_is(_sock: socket.socket) -> None:
    pass
