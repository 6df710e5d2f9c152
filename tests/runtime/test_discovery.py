"""Ranks that find one another: by broadcast, by asking, by mDNS; among strangers and floods."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping

import pytest

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.errors import JoinTimeout, PortInUse, RefusedError, SettingsError
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.link.broadcast import Broadcast
from rlxdeploy.runtime.link.form import Onlooker
from rlxdeploy.runtime.link.mdns import Advert, available
from rlxdeploy.runtime.link.rendezvous import ask
from rlxdeploy.runtime.link.udp import Until
from rlxdeploy.runtime.node import Node
from rlxdeploy.runtime.wire.beacon import Plain
from tests.runtime.cluster import (
    PATIENCE_S,
    Cluster,
    free_ports,
    free_udp_port,
    fresh_host,
    in_threads,
    outcome,
)

Env = Mapping[str, str]
NOTHING: Env = {}
STAR: Env = {"TOPOLOGY": "star"}
needs_zeroconf = pytest.mark.skipif(not available(), reason="this Python has no zeroconf")


class Lan:
    """One loopback address and two ports that nobody else uses."""

    def __init__(self, folder: Path) -> None:
        self.host = fresh_host()
        self.data_port = free_ports(1, self.host)[0]
        self.disc_port = free_udp_port()
        self.key = folder / "key"
        self.key.write_text("5a" * 32, encoding="ascii")
        self.key.chmod(0o600)

    def node(self, rank: int, world: int = 3, more: Env = NOTHING) -> Node:
        environ = {
            "RANK": str(rank),
            "WORLD": str(world),
            "DISCOVER": "1",
            "DISC_PORT": str(self.disc_port),
            "DATA_PORT": str(self.data_port),
            "RLX_BIND": self.host,
            "RLX_JOIN_TIMEOUT": "10",
            "RLX_SPIN_US": "0",
            **more,
        }
        return Node.from_env(environ)

    def native(self) -> Env:
        return {"RLX_WIRE": "native", "RLX_JOB": "found", "RLX_KEY_FILE": str(self.key)}

    def listener(self) -> socket.socket:
        """Return a socket that hears the broadcasts too."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("", self.disc_port))
        sock.settimeout(5)
        return sock

    def say(self, text: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(text, (self.host, self.disc_port))


class Ear(Onlooker):
    """Remembers what was noticed."""

    def __init__(self) -> None:
        self.noted: List[str] = []

    def noticed(self, text: str) -> None:
        self.noted.append(text)


def until(seconds: float) -> Until:
    return Until(time.monotonic() + seconds, seconds)


def ranks_met(nodes: List[Node]) -> List[List[int]]:
    """Let all join; return, for each, what it gathered from all."""
    cluster = Cluster(in_threads([node.connect for node in nodes]))
    met = cluster.run(lambda group: [each[0] for each in gather_ranks(group)])
    cluster.close()
    return met


def gather_ranks(group: ProcessGroup) -> Any:  # noqa: ANN401 - an array
    import numpy as np  # noqa: PLC0415 - the only use

    return group.all_gather(np.array([group.rank]))


@pytest.fixture
def lan(tmp_path: Path) -> Lan:
    return Lan(tmp_path)


WIRES: Dict[str, Callable[[Lan], Env]] = {
    "rlx": lambda _lan: {},
    "native": Lan.native,
}


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_mesh_finds_itself_by_broadcast(lan: Lan, wire: Callable[[Lan], Env]) -> None:
    """No address is written anywhere, and every rank meets every other."""
    assert ranks_met([lan.node(rank, more=wire(lan)) for rank in range(3)]) == [[0, 1, 2]] * 3


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@pytest.mark.parametrize("way", ["asking", pytest.param("mdns", marks=needs_zeroconf)])
def test_a_star_finds_rank_0(lan: Lan, way: str, wire: Callable[[Lan], Env]) -> None:
    """Workers ask DISCOVER_HOST over UDP; without one they look for rank 0 by mDNS."""
    host = {"DISCOVER_HOST": lan.host} if way == "asking" else {}
    nodes = [lan.node(rank, more={**STAR, **host, **wire(lan)}) for rank in range(3)]

    assert ranks_met(nodes) == [[0, 1, 2]] * 3


def test_a_rank_that_comes_late_is_found(lan: Lan) -> None:
    """The others go on announcing until they are linked to it."""
    nodes = [lan.node(rank) for rank in range(3)]

    def late(node: Node, seconds: float) -> Callable[[], ProcessGroup]:
        def connect() -> ProcessGroup:
            time.sleep(seconds)
            return node.connect()

        return connect

    Cluster(in_threads([late(node, 0.4 * rank) for rank, node in enumerate(nodes)])).close()


def test_the_builder_discovers_as_the_environment_does(lan: Lan) -> None:
    """`discover` and `discover_via` say the same as DISCOVER, its ports and DISCOVER_HOST."""
    base = Node(world=2).discover(lan.disc_port, lan.data_port).bind(lan.host).topology("star")
    nodes = [base.rank(0).discover_via(lan.host), base.rank(1).discover_via(lan.host)]

    assert ranks_met(nodes) == [[0, 1]] * 2


def test_who_does_not_announce_itself_is_named(lan: Lan) -> None:
    """At the deadline every missing rank is there by number, and why it may not be heard."""
    outcomes = in_threads(
        [outcome(lan.node(rank, 4, {"RLX_JOIN_TIMEOUT": "0.7"}).connect) for rank in (0, 2)]
    )

    for error in outcomes:
        assert isinstance(error, JoinTimeout)
        assert list(error.missing) == [1, 3]
        assert "it has not announced itself" in error.missing[1]
        assert f"broadcasts from {lan.host}: only this host can hear that" in error.missing[3]


def test_a_rank_0_that_does_not_answer_is_named(lan: Lan) -> None:
    """The worker says whom it asked, and that nobody answered."""
    env = {**STAR, "DISCOVER_HOST": lan.host, "RLX_JOIN_TIMEOUT": "0.7"}
    with pytest.raises(JoinTimeout, match=f"asked {lan.host}:{lan.disc_port} over UDP: "):
        lan.node(1, more=env).connect()


@needs_zeroconf
def test_nobody_by_mdns_is_said(lan: Lan) -> None:
    """The deadline holds for the search by mDNS too, which names the service."""
    with pytest.raises(JoinTimeout, match=r"nobody showed itself by mDNS as _rlx-coord\._udp"):
        lan.node(1, more={**STAR, "RLX_JOIN_TIMEOUT": "0.5"}).connect()


@needs_zeroconf
def test_two_ranks_0_by_mdns_are_refused_by_name(lan: Lan) -> None:
    """Nobody guesses which of two groups a worker belongs to."""
    adverts = [Advert(Address(host, lan.data_port), Plain()) for host in (lan.host, fresh_host())]
    try:
        with pytest.raises(RefusedError, match="several ranks 0") as caught:
            lan.node(1, more=STAR).connect()
    finally:
        for advert in adverts:
            advert.close()
    for name in ("coord", "coord-2"):
        assert f"{name}._rlx-coord._udp.local. at " in str(caught.value)


def test_without_zeroconf_a_worker_says_what_it_needs(
    lan: Lan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is only asked for here, and DISCOVER_HOST does without."""
    monkeypatch.setitem(sys.modules, "zeroconf", None)
    with pytest.raises(RefusedError, match="install it, or set DISCOVER_HOST"):
        lan.node(1, more=STAR).connect()


def test_a_rank_claimed_twice_does_not_stop_the_group(lan: Lan) -> None:
    """The first claim counts while it is heard; the second is named with both addresses."""
    ear = Ear()
    first = Broadcast(0, Address(lan.host, 1000), lan.disc_port, Plain())
    announcing = threading.Event()

    def claim() -> None:
        lan.say(f"RLXDISC 1 {lan.host}:1001".encode())
        lan.say(b"RLXDISC 1 10.9.9.9:1001")
        while not announcing.wait(0.05):
            lan.say(f"RLXDISC 2 {lan.host}:1002".encode())

    stranger = threading.Timer(0.1, claim)
    stranger.start()
    found = first.find_all(3, until(5), ear)
    announcing.set()
    stranger.join()
    first.close()

    assert [str(each) for each in found] == [f"{lan.host}:{port}" for port in (1000, 1001, 1002)]
    assert ear.noted == [
        f"rank 1 is claimed twice: by {lan.host}:1001, which counts, and by 10.9.9.9:1001"
    ]


FLOOD = """
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
text, where = sys.argv[1].encode(), (sys.argv[2], int(sys.argv[3]))
while True:
    for _ in range(1000):
        sock.sendto(text, where)
"""


def test_one_datagram_is_found_among_a_flood(lan: Lan) -> None:
    """While another floods the port as fast as it can, a rank is heard that says it once."""
    argv = [sys.executable, "-c", FLOOD, "RLXDISC 0 10.9.9.9:29500", lan.host, str(lan.disc_port)]
    broadcast = Broadcast(0, Address(lan.host, 1000), lan.disc_port, Plain())
    flood = subprocess.Popen(argv)
    try:
        once = threading.Timer(0.5, lan.say, [f"RLXDISC 1 {lan.host}:1001".encode()])
        once.start()
        found = broadcast.find_all(2, until(10), Onlooker())
        once.join()
    finally:
        flood.kill()
        flood.wait()
        broadcast.close()

    assert found[1] == Address(lan.host, 1001)


def test_a_waiting_rank_paces_itself(lan: Lan) -> None:
    """It hears its own broadcast, and still says no more than a few words a second."""
    heard: List[bytes] = []
    with lan.listener() as ears:
        assert isinstance(outcome(lan.node(0, 2, {"RLX_JOIN_TIMEOUT": "1"}).connect)(), JoinTimeout)
        ears.settimeout(0)
        try:
            while True:
                heard.append(ears.recv(256))
        except BlockingIOError:
            pass

    assert set(heard) == {f"RLXDISC 0 {lan.host}:{lan.data_port}".encode()}
    assert 5 <= len(heard) <= 10


@pytest.mark.parametrize("answer", [b"RLXPORT 0", b"rlxport 5", b"RLXPORT", b"\xff"])
def test_an_unusable_answer_does_not_hurry_a_worker(answer: bytes) -> None:
    """It asks again at its own pace, so that two of a kind make no storm."""
    host = fresh_host()
    asked: List[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((host, 0))
        sock.settimeout(0.05)
        port, over = sock.getsockname()[1], threading.Event()

        def respond() -> None:
            while not over.is_set():
                try:
                    text, asker = sock.recvfrom(64)
                except OSError:
                    continue
                asked.append(text)
                sock.sendto(answer, asker)

        responder = threading.Thread(target=respond)
        responder.start()
        with pytest.raises(JoinTimeout, match="an answer that is none"):
            ask(host, port, Plain(), until(1.4))
        over.set()
        responder.join()

    assert set(asked) == {b"RLXQ"}
    # Every 0.3 s at the most, whatever is answered; a busy machine may miss some beats.
    assert 3 <= len(asked) <= 5


def test_rank_0_answers_whoever_asks_while_it_waits(lan: Lan) -> None:
    """The question and the answer are the captured bytes; lower case is not answered."""
    root = threading.Thread(
        target=outcome(lan.node(0, 2, {**STAR, "RLX_JOIN_TIMEOUT": "1"}).connect)
    )
    root.start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.1)
        answers: List[bytes] = []
        while not answers:
            sock.sendto(b"rlxq", (lan.host, lan.disc_port))
            sock.sendto(b"RLXQ and so on", (lan.host, lan.disc_port))
            try:
                answers.append(sock.recv(64))
            except OSError:
                continue
        assert answers == [f"RLXPORT {lan.data_port}".encode()]
        with pytest.raises(OSError, match="timed out"):
            sock.recv(64)
    root.join()


def test_a_udp_port_in_use_names_its_holder(lan: Lan) -> None:
    """Rank 0 of a star shares its port with nobody, as only one of two would be asked."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("", lan.disc_port))
        with pytest.raises(PortInUse) as caught:
            lan.node(0, more={**STAR, "DISCOVER_HOST": "x"}).connect()

    assert caught.value.port == lan.disc_port
    assert f"(pid {os.getpid()})" in str(caught.value)


def test_a_tcp_port_in_use_is_known_before_the_search(lan: Lan) -> None:
    """The error comes at once and not when all others are found."""
    with socket.create_server((lan.host, lan.data_port)), pytest.raises(PortInUse):
        lan.node(0).connect()


def test_strangers_do_not_lead_a_job_with_a_key_astray(lan: Lan) -> None:
    """Whoever lacks the key is not believed: neither its announcements nor its answers."""
    stop = threading.Event()

    def lie() -> None:
        while not stop.wait(0.02):
            for rank in range(2):
                lan.say(f"RLXDISC {rank} 127.0.0.1:9".encode())
                lan.say(f"RLXJOB 0000000000000000 2 disc {rank} 127.0.0.1:9 -".encode())

    liar = threading.Thread(target=lie)
    liar.start()
    try:
        assert ranks_met([lan.node(rank, 2, lan.native()) for rank in range(2)]) == [[0, 1]] * 2
    finally:
        stop.set()
        liar.join()


@pytest.mark.parametrize("bind", ["::1", "::"])
def test_discovery_needs_an_ipv4_address(lan: Lan, bind: str) -> None:
    """Broadcasts know no other; the error names the variable."""
    with pytest.raises(SettingsError, match=f"RLX_BIND is '{bind}'"):
        lan.node(0, more={"RLX_BIND": bind, "RLX_SECURITY": "none"}).connect()


def test_only_the_job_with_the_key_is_told_where_rank_0_is(lan: Lan) -> None:
    """A question without the key gets no answer at all."""
    env = {**lan.native(), **STAR, "DISCOVER_HOST": lan.host, "RLX_JOIN_TIMEOUT": "0.8"}
    root = threading.Thread(target=outcome(lan.node(0, 2, env).connect))
    root.start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.5)
        sock.sendto(b"RLXQ", (lan.host, lan.disc_port))
        with pytest.raises(OSError, match="timed out"):
            sock.recv(64)
    root.join(PATIENCE_S)
