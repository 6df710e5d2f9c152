"""Ranks of the native wire find one another, and who does not belong stays outside."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from rlxdeploy.runtime.errors import JoinTimeout, RefusedError, SettingsError
from rlxdeploy.runtime.keyfile import read_key
from rlxdeploy.runtime.link.congestion import is_here
from rlxdeploy.runtime.node import Node
from rlxdeploy.runtime.wire.frame import hello
from rlxdeploy.runtime.wire.identity import HandshakeRefused
from tests.runtime.cluster import dial, fresh_host, in_threads, outcome, peers_on
from tests.runtime.native.joining import joined, new_key, node, working

LAG_S = 0.2


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return new_key(tmp_path / "key")


@pytest.mark.parametrize("topology", ["mesh", "star"])
@pytest.mark.parametrize("host", ["127", "::1"])
def test_ranks_that_hold_the_key_form_a_group(key_file: Path, topology: str, host: str) -> None:
    """With a key, over IPv4 and IPv6, in a mesh and in a star."""
    peers = peers_on(fresh_host() if host == "127" else host, 3)
    nodes = [node(peers, rank, topology, RLX_KEY_FILE=str(key_file)) for rank in range(3)]

    working(joined(nodes))


def test_a_second_process_with_a_rank_is_refused_and_the_group_forms_without_it() -> None:
    """It is told which incarnation is here already."""
    peers = peers_on(fresh_host(), 3)
    nodes = [node(peers, rank, "star") for rank in (0, 1)]
    twin = node(peers, 1, "star", RLX_JOIN_TIMEOUT="2")
    results: Dict[str, Any] = {}

    def join(name: str, each: Node) -> None:
        results[name] = outcome(each.connect)()

    threads = [threading.Thread(target=join, args=(f"rank {i}", n)) for i, n in enumerate(nodes)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    threads.append(threading.Thread(target=join, args=("twin", twin)))
    threads[-1].start()
    threads[-1].join(10)
    assert isinstance(results["twin"], HandshakeRefused)
    assert "rank 1 is here already" in str(results["twin"])
    join("rank 2", node(peers, 2, "star"))
    for thread in threads:
        thread.join(10)

    working([results[f"rank {rank}"] for rank in range(3)])


@pytest.mark.parametrize("topology", ["mesh", "star"])
def test_a_missing_rank_is_named_by_all_with_what_was_tried(topology: str) -> None:
    """A worker of a star, which has no link to it, hears it from rank 0."""
    peers = peers_on(fresh_host(), 3)
    errors = joined([node(peers, rank, topology, RLX_JOIN_TIMEOUT="1") for rank in (0, 1)])

    for error in errors:
        assert isinstance(error, JoinTimeout)
        # Whoever gave up a moment before is missing, too.
        assert 2 in error.missing
    assert "should dial in" in errors[0].missing[2]


STRANGERS: Dict[str, bytes] = {
    "silent": b"",
    "half a frame": b"RLXN",
    "a browser": b"GET / HTTP/1.1\r\n\r\n",
    "the other wire": hello(1),
    "a proof of nothing": b"RLXN\x01\x02\x20\x00" + bytes(32),
}


@pytest.mark.parametrize("said", STRANGERS.values(), ids=STRANGERS.keys())
def test_strangers_do_not_keep_a_group_from_forming(said: bytes) -> None:
    """Whoever knocks and is no rank is dropped, and the join goes on."""
    peers = peers_on(fresh_host(), 2)
    host, _, port = peers[0].rpartition(":")
    results: List[Any] = []
    zero = threading.Thread(target=lambda: results.append(outcome(node(peers, 0).connect)()))
    zero.start()
    with dial(host, int(port)) as knock:
        knock.sendall(said)
        one = node(peers, 1).connect()
    zero.join(10)

    working([results[0], one])


def test_a_rank_that_restarts_during_the_join_is_taken_back() -> None:
    """The group is named anew, and every rank has a link to the second incarnation."""
    peers = peers_on(fresh_host(), 3)
    first = node(peers, 2, RLX_JOIN_TIMEOUT="0.4")
    early: List[Any] = []
    threads = [
        threading.Thread(target=lambda r=rank: early.append((r, outcome(node(peers, r).connect)())))
        for rank in (0,)
    ]
    threads[0].start()
    assert isinstance(outcome(first.connect)(), JoinTimeout)
    groups = joined([node(peers, rank) for rank in (1, 2)])
    threads[0].join(10)

    working([early[0][1], *groups])


def slow_way(listener: socket.socket, host: str, port: int) -> None:
    """Pass one connection on to *port*; its answers are heard `LAG_S` after they were given."""
    near, _ = listener.accept()
    far = dial(host, port)

    def there() -> None:
        with contextlib.suppress(OSError):
            for said in iter(lambda: near.recv(1 << 16), b""):
                far.sendall(said)

    threading.Thread(target=there, daemon=True).start()
    with near, far, contextlib.suppress(OSError):
        for said in iter(lambda: far.recv(1 << 16), b""):
            time.sleep(LAG_S)
            near.sendall(said)


def test_a_rank_may_be_done_before_another_hears_that_the_group_has_formed() -> None:
    """What it has sent and its goodbye wait for that one: it is finished, and not lost."""
    host = fresh_host()
    peers = peers_on(host, 3)
    with socket.create_server((host, 0)) as listener:
        leader = host, int(peers[0].rpartition(":")[2])
        threading.Thread(target=slow_way, args=(listener, *leader), daemon=True).start()
        slowly = [f"{host}:{listener.getsockname()[1]}", *peers[1:]]

        def sends() -> None:
            with node(peers, 1).connect() as group:
                group.send_bytes(2, 7, b"early")

        def takes() -> bytes:
            with node(slowly, 2).connect() as group:
                return group.recv_bytes(1, 7)

        def leads() -> None:
            node(peers, 0).connect().close()

        results = in_threads([outcome(deed) for deed in (leads, sends, takes)])
    assert results == [None, None, b"early"]


def test_off_loopback_a_key_or_a_word_is_needed(key_file: Path) -> None:
    """An address others can reach is bound only by ranks that prove themselves, or if written."""
    address = "192.0.2.1"
    assert not is_here((address, 0), socket.AF_INET)
    peers = [f"{address}:29555", f"{address}:29556"]

    with pytest.raises(RefusedError, match="security"):
        node(peers, 0).connect()
    with pytest.raises(RefusedError, match="cannot listen"):
        node(peers, 0, RLX_KEY_FILE=str(key_file)).connect()


@pytest.mark.parametrize("text", ["", "abc", "zz" * 32])
def test_a_key_file_without_a_key_is_refused(tmp_path: Path, text: str) -> None:
    """The error names the variable and the file, not what is in it."""
    path = new_key(tmp_path / "key")
    path.write_text(text)

    with pytest.raises(SettingsError) as caught:
        node(peers_on(fresh_host(), 2), 0, RLX_KEY_FILE=str(path)).connect()

    assert caught.value.variable == "RLX_KEY_FILE"
    assert str(path) in str(caught.value)


# By owner: root may let a group of its choice read what is root's, as systemd's credentials are.
MODES: Dict[str, Tuple[int, int, bool]] = {
    "the owner's alone": (1000, 0o600, True),
    "read-only": (1000, 0o400, True),
    "the group may read": (1000, 0o640, False),
    "all may read": (1000, 0o644, False),
    "root lets a group read": (0, 0o440, True),
    "root lets a group write": (0, 0o660, False),
    "root lets all read": (0, 0o604, False),
}


@pytest.mark.parametrize(("owner", "mode", "good"), MODES.values(), ids=MODES.keys())
def test_a_key_that_others_can_read_is_refused(
    tmp_path: Path,
    owner: int,
    mode: int,
    good: bool,  # noqa: FBT001 - a case
) -> None:
    """Before anything is sent, with the command that mends it."""
    path = new_key(tmp_path / "key", mode)
    if os.getuid() == 0:
        os.chown(path, owner, -1)
    elif owner == 0:
        pytest.skip("only root can give a file to root")

    if good:
        assert len(read_key(path)) == 32
        return
    with pytest.raises(SettingsError, match=f"mode {mode:04o}.*chmod 600 {path}"):
        read_key(path)


def test_connections_within_a_host_are_not_paced() -> None:
    """Both ends of a link on one host use what is fastest there, where the kernel lets them."""
    peers = peers_on(fresh_host(), 2)
    groups = joined([node(peers, rank) for rank in range(2)])
    sockets = [next(iter(g._wire._vigil.channels.values())).sock for g in groups]  # noqa: SLF001 - the sockets
    with socket.socket() as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        except OSError:
            expected = probe.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        else:
            expected = b"reno".ljust(16, b"\0")
    used = [each.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16) for each in sockets]
    working(groups)

    assert used == [expected] * 2
