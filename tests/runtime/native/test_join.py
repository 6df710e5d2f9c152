"""Ranks of the native wire find one another, and who does not belong stays outside."""

from __future__ import annotations

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import pytest

from rlxdeploy.runtime.errors import JoinTimeout, RefusedError, SettingsError
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.keyfile import read_key
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.congestion import is_here
from rlxdeploy.runtime.node import Node
from rlxdeploy.runtime.wire.frame import hello
from rlxdeploy.runtime.wire.handshake import HandshakeRefused, IdentityMismatch, WrongKey
from tests.runtime.cluster import (
    dial,
    environment,
    fresh_host,
    in_threads,
    outcome,
    peers_on,
)

Join = Callable[..., Any]
QUICK = Limits(hello_s=0.3, dial_s=0.5, refused_s=0.5)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return new_key(tmp_path / "key")


def new_key(path: Path, mode: int = 0o600) -> Path:
    """Return *path* as the file of a fresh key."""
    path.touch(mode)
    path.write_text(os.urandom(32).hex())
    path.chmod(mode)
    return path


def node(peers: List[str], rank: int, topology: str = "mesh", **more: str) -> Node:
    """Return a rank of a job; *more* overrides its environment."""
    told = environment(
        rank,
        peers,
        topology,
        **{"RLX_WIRE": "native", "RLX_JOB": "job", "RLX_PLAN": "plan", **more},
    )
    return Node.from_env(told, limits=QUICK).timeout(10)


def joined(nodes: List[Node]) -> List[Any]:
    """Let all join at once; return groups, or what they raised."""
    return in_threads([outcome(each.connect) for each in nodes])


def working(groups: List[ProcessGroup]) -> None:
    """Check that the groups compute, then end them."""

    def work(group: ProcessGroup) -> float:
        with group:
            return float(group.all_reduce(np.ones(1, np.float32))[0])

    results = in_threads([partial(work, group) for group in groups])
    assert results == [len(groups)] * len(groups)


@pytest.mark.parametrize("topology", ["mesh", "star"])
@pytest.mark.parametrize("host", ["127", "::1"])
def test_ranks_that_hold_the_key_form_a_group(key_file: Path, topology: str, host: str) -> None:
    """With a key, over IPv4 and IPv6, in a mesh and in a star."""
    peers = peers_on(fresh_host() if host == "127" else host, 3)
    nodes = [node(peers, rank, topology, RLX_KEY_FILE=str(key_file)) for rank in range(3)]

    working(joined(nodes))


def refused(rank_1: Dict[str, str], **more: str) -> Tuple[Any, Any]:
    """Let two ranks meet of which one is different; return what each raised."""
    peers = peers_on(fresh_host(), 2)
    told = {"RLX_JOIN_TIMEOUT": "1", **more}
    both = joined([node(peers, 0, **told), node(peers, 1, **{**told, **rank_1})])
    return both[0], both[1]


@pytest.mark.parametrize(
    ("rank_1", "name", "here", "there"),
    [
        ({"RLX_JOB": "other"}, "job", "job", "other"),
        ({"RLX_PLAN": "old"}, "plan", "plan", "old"),
    ],
    ids=["job", "plan"],
)
def test_ranks_that_differ_are_refused_on_both_ends_with_both_values(
    rank_1: Dict[str, str], name: str, here: str, there: str
) -> None:
    """At the deadline both say what they have and what the other has, and end with 78."""
    zero, one = refused(rank_1)

    assert isinstance(zero, IdentityMismatch)
    assert isinstance(one, IdentityMismatch)
    assert (zero.ours, zero.theirs) == ({name: here}, {name: there})
    assert (one.ours, one.theirs) == ({name: there}, {name: here})
    assert zero.exit_code == one.exit_code == 78


def test_ranks_of_another_world_are_refused_on_both_ends() -> None:
    """A rank that expects another number of ranks does not get in."""
    peers = peers_on(fresh_host(), 3)
    told = {"RLX_JOIN_TIMEOUT": "1"}
    zero, one = joined([node(peers[:2], 0, **told), node(peers, 1, **told)])

    assert isinstance(zero, IdentityMismatch)
    assert isinstance(one, IdentityMismatch)
    assert (zero.ours, zero.theirs) == ({"world": 2}, {"world": 3})


def test_ranks_with_different_keys_are_refused_on_both_ends(tmp_path: Path) -> None:
    """Neither learns the other's key, both name the setting."""
    files = [new_key(tmp_path / "one"), new_key(tmp_path / "two")]
    zero, one = refused({"RLX_KEY_FILE": str(files[0])}, RLX_KEY_FILE=str(files[1]))

    assert isinstance(zero, WrongKey)
    assert isinstance(one, WrongKey)
    assert "RLX_KEY_FILE" in str(one)


@pytest.mark.parametrize("topology", ["mesh", "star"])
def test_a_rank_with_another_key_gives_up_soon_and_the_group_forms_without_it(
    tmp_path: Path, key_file: Path, topology: str
) -> None:
    """Rank 0 keeps refusing it: it ends long before the deadline, the others go on waiting."""
    peers = peers_on(fresh_host(), 3)
    right = {"RLX_KEY_FILE": str(key_file)}
    wrong = {"RLX_KEY_FILE": str(new_key(tmp_path / "wrong"))}
    with ThreadPoolExecutor() as pool:
        early = [pool.submit(node(peers, rank, topology, **right).connect) for rank in (0, 1)]
        with pytest.raises(WrongKey) as caught:
            node(peers, 2, topology, **{**wrong, "RLX_JOIN_TIMEOUT": "3600"}).connect()
        late = node(peers, 2, topology, **right).connect()
        groups = [*(each.result() for each in early), late]

    assert caught.value.exit_code == 78
    working(groups)


@pytest.mark.parametrize("topology", ["mesh", "star"])
def test_where_rank_0_has_another_key_the_others_give_up_soon(
    tmp_path: Path, key_file: Path, topology: str
) -> None:
    """Without rank 0 there is no group; rank 0 itself, which is dialled, waits for better ones."""
    peers = peers_on(fresh_host(), 3)
    wrong = new_key(tmp_path / "wrong")
    keys = [wrong, key_file, key_file]
    told = [{"RLX_KEY_FILE": str(key), "RLX_JOIN_TIMEOUT": "3600"} for key in keys]
    told[0]["RLX_JOIN_TIMEOUT"] = "4"
    zero, one, two = joined([node(peers, rank, topology, **told[rank]) for rank in range(3)])

    assert isinstance(one, WrongKey)
    assert isinstance(two, WrongKey)
    assert isinstance(zero, (WrongKey, JoinTimeout))


def test_an_older_rank_0_is_waited_for(key_file: Path, tmp_path: Path) -> None:
    """Its plan differs, so that it is about to be replaced: who it refuses asks until it is."""
    peers = peers_on(fresh_host(), 2)
    old = {"RLX_PLAN": "old", "RLX_KEY_FILE": str(new_key(tmp_path / "old"))}
    new = {"RLX_KEY_FILE": str(key_file)}
    longer_than_a_refusal = {"RLX_JOIN_TIMEOUT": str(3 * QUICK.refused_s)}
    with ThreadPoolExecutor() as pool:
        one = pool.submit(node(peers, 1, **new).connect)
        with pytest.raises(RefusedError):
            node(peers, 0, **old, **longer_than_a_refusal).connect()
        working([node(peers, 0, **new).connect(), one.result()])


def test_a_rank_without_a_key_is_refused_by_one_with(key_file: Path) -> None:
    """Security is one of the things all ranks must have alike."""
    zero, one = refused({"RLX_SECURITY": "none"}, RLX_KEY_FILE=str(key_file))

    assert isinstance(zero, IdentityMismatch)
    assert isinstance(one, IdentityMismatch)
    assert zero.theirs == {"security": "none"}


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
