"""Whole groups in one process: a thread a rank, real TCP between them."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from rlxdeploy.runtime.algorithm.native_steps import Shape
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.base import Call, begin
from rlxdeploy.runtime.link.channel import Channel
from rlxdeploy.runtime.link.heap import Heap
from rlxdeploy.runtime.link.native import Native
from rlxdeploy.runtime.link.tcp import Patience

TINY = 4096
# Threads share one interpreter: spinning would only keep the others from running.
PATIENCE = Patience(0.0, crowded=True, peer_timeout=10.0)
Pair = Tuple[socket.socket, socket.socket]


def connect(buffers: Optional[int]) -> Pair:
    """Return the two ends of a TCP connection, with kernel buffers of *buffers* bytes."""
    ends: List[socket.socket] = []
    with socket.socket() as listener:
        ends.append(socket.socket())
        for each in (listener, ends[0]):
            if buffers:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffers)
                each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        ends[0].connect(listener.getsockname())
        ends.append(listener.accept()[0])
    for each in ends:
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ends[0], ends[1]


def call(op: str = "test", seconds: float = 30.0) -> Call:
    """Return a call with a deadline that only a failing test reaches."""
    return begin(op, seconds, whole=True)


@contextlib.contextmanager
def group(
    world: int,
    *,
    star: bool = False,
    crowded: bool = True,
    buffers: Optional[int] = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Iterator[List[Native]]:
    """Yield one end for every rank; their sockets are closed afterwards."""
    links: List[Dict[int, Channel]] = [{} for _ in range(world)]
    for low in range(world):
        for high in range(low + 1, world):
            if low == 0 or not star:
                ends = connect(buffers)
                links[low][high] = Channel(high, f"address of {high}", ends[0])
                links[high][low] = Channel(low, f"address of {low}", ends[1])
    hub = star and world > 2
    natives = [
        Native(Shape(rank, world, crowded, hub), links[rank], limits, PATIENCE, Heap(1 << 16))
        for rank in range(world)
    ]
    try:
        yield natives
    finally:
        for channels in links:
            for channel in channels.values():
                channel.sock.close()


def each(natives: List[Native], body: Callable[[Native, int], Any]) -> List[Any]:
    """Run *body* on every rank at once; return the results, an exception being one too."""
    results: List[Any] = [None] * len(natives)

    def run(rank: int) -> None:
        try:
            results[rank] = body(natives[rank], rank)
        except BaseException as error:  # noqa: BLE001 - handed to the test
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(natives))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a rank stands still"
    return results


def results(natives: List[Native], body: Callable[[Native, int], Any]) -> List[Any]:
    """Run *body* on every rank at once; raise what any of them raised."""
    done = each(natives, body)
    for one in done:
        if isinstance(one, BaseException):
            raise one
    return done
