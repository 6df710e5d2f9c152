"""Bring-up among strangers, latecomers and pretenders."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Callable, Dict, List, Sequence

import pytest

from rlxdeploy.runtime.errors import JoinTimeout, PortInUse
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.door import Door
from rlxdeploy.runtime.link.form import Formation, Onlooker, Place
from rlxdeploy.runtime.link.listener import listen
from rlxdeploy.runtime.node import Node
from rlxdeploy.runtime.settings import Settings
from rlxdeploy.runtime.wire.frame import Frame, Kind, encode, hello
from tests.runtime.cluster import (
    PATIENCE_S,
    Cluster,
    dial,
    environment,
    fresh_host,
    in_threads,
    outcome,
    peers_on,
)


class Witness(Onlooker):
    """Remembers what the join has told."""

    def __init__(self) -> None:
        self.told: List[Sequence[int]] = []
        self.noted: List[str] = []

    def missing(self, ranks: Sequence[int]) -> None:
        self.told.append(ranks)

    def noticed(self, text: str) -> None:
        self.noted.append(text)


class Joining:
    """Rank *rank* of two or more, in the middle of its join."""

    def __init__(self, rank: int, peers: List[str], limits: Limits, topology: str) -> None:
        self.settings = Settings.from_env(environment(rank, peers, topology))
        self.witness = Witness()
        address = self.settings.listen_address
        assert address is not None
        self.address = address
        listener = listen(address, limits, open_net=False)
        self.door = Door(listener, limits, 10, self.witness.noticed)
        place = Place(
            rank, len(peers), self.settings.star, self.settings.peers, self.settings.peer_timeout
        )
        self.formation = Formation(place, self.door, limits, self.witness)
        self.links: Dict[int, object] = {}
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        links = self.formation.run(time.monotonic() + PATIENCE_S, PATIENCE_S)
        self.links = {rank: link.address for rank, link in links.items()}
        for link in links.values():
            link.sock.close()

    def knock(self, said: bytes = b"") -> socket.socket:
        """Connect and say something."""
        sock = dial(*self.address)
        sock.sendall(said)
        return sock

    def finish(self) -> Dict[int, object]:
        self._thread.join(PATIENCE_S)
        self.formation.close()
        return self.links


def shown_out(sock: socket.socket) -> bool:
    """Whether the other end closes *sock* soon."""
    sock.settimeout(5)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def barrier_token(rank: int) -> bytes:
    return encode(Frame(Kind.SEND, rank, 0xFFF00000, b"\x01"))


STRANGERS: Dict[str, bytes] = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "zeros": bytes(64),
    "unknown-rank": hello(9),
    "own-rank": hello(1),
    "higher-rank": hello(2),
    "not-hello": b"\2" + bytes(12),
    "hello-with-payload": b"\1" + bytes(8) + b"\5\0\0\0hello",
}


@pytest.mark.parametrize("said", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_is_dropped_and_counted_while_the_join_goes_on(said: bytes) -> None:
    """Whoever does not say the HELLO of an awaited rank is shown out; rank 0 still gets in."""
    peers = peers_on(fresh_host(), 2)
    joining = Joining(1, peers, Limits(), "mesh")
    with joining.knock(said) as stranger:
        assert shown_out(stranger)

    with joining.knock(hello(0)):
        assert joining.finish() == {0: peers[0]}
    assert joining.door.strangers.count == 1


def test_silent_and_slow_guests_do_not_hold_up_the_join() -> None:
    """Half-open connections time out, the oldest make room, and a byte a time is not enough."""
    joining = Joining(1, peers_on(fresh_host(), 2), Limits(hello_s=0.3, max_guests=5), "mesh")
    with ExitStack() as guests:
        silent = [guests.enter_context(joining.knock()) for _ in range(12)]
        slow = guests.enter_context(joining.knock(hello(0)[:1]))
        assert all(shown_out(each) for each in silent)
        assert shown_out(slow)
        guests.enter_context(joining.knock(hello(0)))
        assert list(joining.finish()) == [0]
    assert joining.door.strangers.count == 13


def test_a_port_scan_is_no_reason_to_fail() -> None:
    """Connections that close at once are passed over."""
    joining = Joining(1, peers_on(fresh_host(), 2), Limits(), "mesh")
    for _ in range(50):
        joining.knock().close()
    with joining.knock(hello(0)):
        assert list(joining.finish()) == [0]


def test_a_second_process_with_the_same_rank_is_refused() -> None:
    """The first one stays, the second is shown out, and the refusal names both."""
    joining = Joining(0, peers_on(fresh_host(), 3), Limits(), "star")
    with joining.knock(hello(1)) as first, ExitStack() as later:
        while joining.witness.told[-1:] != [(2,)]:
            time.sleep(0.005)
        with joining.knock(hello(1)) as second:
            assert shown_out(second)
        port = first.getsockname()[1]
        later.enter_context(joining.knock(hello(2)))
        links = joining.finish()
    assert sorted(links) == [1, 2]
    assert str(links[1]).endswith(f":{port}")
    assert [f"here already, at 127.0.0.1:{port}" in note for note in joining.witness.noted] == [
        True
    ]


def test_a_link_lost_during_the_join_is_replaced() -> None:
    """A rank that dies, whatever it has said, is let in again while others are missing."""
    joining = Joining(0, peers_on(fresh_host(), 3), Limits(), "star")
    joining.knock(hello(1)).close()
    joining.knock(hello(1) + barrier_token(1)).close()
    with joining.knock(hello(1)), joining.knock(hello(2)):
        assert sorted(joining.finish()) == [1, 2]


def test_a_dialled_rank_that_closes_is_dialled_again() -> None:
    """The acceptor restarts during the join: the dialler comes back on its own."""
    peers = peers_on(fresh_host(), 3)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(_where(peers[1])))
        listener.settimeout(PATIENCE_S)
        joining = Joining(0, peers, Limits(), "mesh")
        for _ in range(3):
            accepted, _ = listener.accept()
            assert accepted.recv(13) == hello(0)
            accepted.close()
        last, _ = listener.accept()
        stack.enter_context(last)
        stack.enter_context(socket.create_server(_where(peers[2])))
        assert sorted(joining.finish()) == [1, 2]


def _where(peer: str) -> tuple[str, int]:
    host, _, port = peer.rpartition(":")
    return host, int(port)


def nodes(
    peers: List[str], topology: str = "mesh", **more: str
) -> List[Callable[[], ProcessGroup]]:
    return [
        Node.from_env(environment(rank, peers, topology, **more)).connect
        for rank in range(len(peers))
    ]


def test_ranks_may_start_in_any_order() -> None:
    """Each waits for those that come later, in either direction of dialling."""
    connects = nodes(peers_on(fresh_host(), 3))

    def late(rank: int) -> ProcessGroup:
        time.sleep(0.15 * (rank * 2 % 3))
        return connects[rank]()

    cluster = Cluster(in_threads([lambda: late(0), lambda: late(1), lambda: late(2)]))
    cluster.run(lambda group: group.barrier())
    cluster.close()


def test_a_rank_that_never_comes_is_named_with_what_was_tried() -> None:
    """Each rank says whom it misses, the address it dialled and what came of it."""
    peers = peers_on(fresh_host(), 3)
    patient, hasty = (
        nodes(peers, RLX_JOIN_TIMEOUT="0.9")[0],
        nodes(peers, RLX_JOIN_TIMEOUT="0.4")[2],
    )
    first, last = in_threads([outcome(patient), outcome(hasty)])

    assert isinstance(last, JoinTimeout)
    assert list(last.missing) == [1]
    assert f"should dial in from {_where(peers[1])[0]} at {peers[2]}" in str(last)
    assert isinstance(first, JoinTimeout)
    assert list(first.missing) == [1, 2]
    assert first.missing[1] == f"dialled {peers[1]}: connection refused"
    assert "within 0.9 s; still missing ranks 1, 2:\n  rank 1: dialled" in str(first)
    assert first.exit_code == 75


def test_a_rank_that_only_listens_is_missing_too() -> None:
    """Rank 2 of a star has its link, but rank 0 still waits for rank 1 and says so."""
    peers = peers_on(fresh_host(), 3)
    connects = nodes(peers, "star", RLX_JOIN_TIMEOUT="0.5")
    root, worker = in_threads([outcome(connects[0]), outcome(connects[2])])

    assert isinstance(root, JoinTimeout)
    assert list(root.missing) == [1]
    assert isinstance(worker, ProcessGroup)
    worker.abort()


def test_a_name_is_resolved_and_one_that_does_not_resolve_is_said() -> None:
    """PEERS may hold names; a name that means nothing is the reason of the join timeout."""
    port = peers_on("127.0.0.1", 1)[0].rpartition(":")[2]
    peers = [f"localhost:{port}", "127.0.0.1:1"]
    cluster = Cluster(in_threads(nodes(peers, "star")))
    cluster.close()

    nowhere = ["127.0.0.1:" + port, "no-such-host.invalid:29500"]
    with pytest.raises(JoinTimeout, match=r"dialled no-such-host\.invalid:29500: "):
        nodes(nowhere, RLX_JOIN_TIMEOUT="0.5")[0]()


@pytest.mark.parametrize("wildcard", [False, True], ids=["own", "wildcard"])
def test_a_port_in_use_names_its_holder(wildcard: bool) -> None:  # noqa: FBT001 - a table of two
    """The error carries address, port and the process that has it."""
    peers = peers_on(fresh_host(), 2)
    host, port = _where(peers[0])
    taken = socket.create_server(("0.0.0.0" if wildcard else host, port))  # noqa: S104 - the claim
    with taken, pytest.raises(PortInUse) as caught:
        nodes(peers)[0]()

    name = Path("/proc/self/comm").read_text(encoding="utf-8").strip()
    assert (caught.value.host, caught.value.port) == (host, port)
    assert caught.value.holder == f"{name} (pid {os.getpid()})"
    assert f"{host} port {port} is in use by {name}" in str(caught.value)


def test_exactly_the_own_address_is_bound() -> None:
    """Another process may have the same port on another address of the host."""
    peers = peers_on(fresh_host(), 2)
    host, port = _where(peers[1])
    with socket.create_server((fresh_host(), port)):
        cluster = Cluster(in_threads(nodes(peers)))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, port), 1)
    cluster.close()
