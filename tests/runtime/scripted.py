"""Peers on raw sockets that say what was captured or worked out, and what ours does among them."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.node import Node
from rlxdeploy.runtime.roster import awaits, dials
from rlxdeploy.runtime.wire.frame import HEADER_BYTES, Frame, Kind, encode, hello
from tests.runtime.cluster import PATIENCE_S, dial, environment, fresh_host, peers_on
from tests.runtime.golden import Vector, greeting


class Script:
    """The other ranks of a vector: raw sockets that say what was captured."""

    def __init__(self, vector: Vector, ours: int) -> None:
        self.vector, self.ours, self.star = vector, ours, vector.topology == "star"
        self.peers = peers_on(fresh_host(), vector.world)
        self.links: Dict[int, socket.socket] = {}
        self.heard: Dict[int, bytes] = {}
        self._listeners = {
            rank: socket.create_server(self._address(rank))
            for rank in dials(ours, vector.world, star=self.star)
        }

    def _address(self, rank: int) -> Tuple[str, int]:
        host, _, port = self.peers[rank].rpartition(":")
        return host, int(port)

    def connect(self) -> None:
        """Connect to our rank or let it connect, and take what it says first into `heard`."""
        for rank in awaits(self.ours, self.vector.world, star=self.star):
            self.links[rank] = dial(*self._address(self.ours))
            self.links[rank].sendall(greeting(self.vector.topology, rank))
        for rank, listener in self._listeners.items():
            listener.settimeout(PATIENCE_S)
            self.links[rank], _ = listener.accept()
            listener.close()
            self.links[rank].settimeout(PATIENCE_S)
            self.heard[rank] = exactly(self.links[rank], HEADER_BYTES)
        for link in self.links.values():
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def play(self, manner: Manner) -> None:
        """Say all that was captured and see that our rank does; in turn, or all at once."""
        if self.vector.in_turn:
            for source, to, frame in self.vector.frames:
                if source == self.ours:
                    assert exactly(self.links[to], len(frame)) == frame
                else:
                    say(self.links[source], frame, manner.piece)
        for other, link in self.links.items():
            if not self.vector.in_turn:
                say(link, self.vector.stream(other, self.ours), manner.piece)
            # Our rank may be done, and gone.
            with contextlib.suppress(ConnectionError):
                link.sendall(manner.trailing(other))
        for other, link in self.links.items():
            if not self.vector.in_turn:
                expected = self.vector.stream(self.ours, other)
                assert exactly(link, len(expected)) == expected

    def see_the_end(self) -> None:
        """See that our rank says nothing more and closes."""
        for link in self.links.values():
            # A reset: it closed while something that it had no use for was under way to it.
            with link, contextlib.suppress(ConnectionResetError):
                assert link.recv(1) == b""


class Manner(NamedTuple):
    """How a script speaks: *piece* bytes at a time, and perhaps more than was captured."""

    piece: int
    more: bool = False

    def trailing(self, rank: int) -> bytes:
        if not self.more:
            return b""
        return encode(Frame(Kind.SEND, rank, 77, b"for later")) + hello(rank)[:7]


MANNERS = {"whole": Manner(1 << 20), "bytes": Manner(1), "trailing": Manner(1 << 20, more=True)}


def say(sock: socket.socket, data: bytes, piece: int) -> None:
    for at in range(0, len(data), piece):
        sock.sendall(data[at : at + piece])


def exactly(sock: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        more = sock.recv(count - len(got))
        assert more, f"closed after {got.hex()}"
        got += more
    return got


class Played(NamedTuple):
    """What our rank's deed returned, and what it said first to whom it dialled."""

    result: Any
    heard: Dict[int, bytes]


def play(
    vector: Vector,
    ours: int,
    manner: Manner,
    deed: Callable[[ProcessGroup], Any],
    heap_mib: int = 1,
) -> Played:
    """Let our rank do *deed* among scripted peers, and see that it says nothing more."""
    script = Script(vector, ours)
    results: List[Any] = []
    more = {"RLX_DETERMINISTIC_REDUCE": "1"} if vector.deterministic else {}
    more["HEAP_MB"] = str(heap_mib)
    node = Node.from_env(environment(ours, script.peers, vector.topology, **more))

    def be_rank() -> None:
        with node.timeout(PATIENCE_S).connect() as group:
            results.append(deed(group))

    rank = threading.Thread(target=be_rank)
    rank.start()
    script.connect()
    script.play(manner)
    rank.join(PATIENCE_S)
    script.see_the_end()
    return Played(results[0], script.heard)
