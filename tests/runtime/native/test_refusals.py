"""Ranks that do not belong together: who says so, when, and what ends with 78."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

import pytest

from rlxdeploy.runtime.errors import JoinTimeout
from rlxdeploy.runtime.wire.identity import IdentityMismatch, WrongKey
from tests.runtime.cluster import dial, fresh_host, peers_on
from tests.runtime.native.joining import QUICK, joined, new_key, node, working


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return new_key(tmp_path / "key")


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
    """Who dials rank 0 in vain ends with 78; rank 0, whom any stranger may dial, only says so."""
    files = [new_key(tmp_path / "one"), new_key(tmp_path / "two")]
    zero, one = refused({"RLX_KEY_FILE": str(files[0])}, RLX_KEY_FILE=str(files[1]))

    assert isinstance(one, WrongKey)
    assert one.exit_code == 78
    assert re.match(r"127\.\S+:\d+: rank 0 holds another key .* same RLX_KEY_FILE", str(one))
    assert isinstance(zero, JoinTimeout)
    assert zero.exit_code == 75
    assert re.search("says it is rank 1 was refused: rank 1 holds another key", zero.missing[1])
    assert re.match(r"\d+ times, last from 127\.0\.0\.1:\d+: rank 1 holds", zero.turned_away[0])


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
    assert isinstance(zero, JoinTimeout)
    assert all("holds another key" in why for why in zero.missing.values())


def test_an_older_rank_0_is_waited_for(key_file: Path, tmp_path: Path) -> None:
    """Its plan differs, so that it is about to be replaced: who it refuses asks until it is."""
    peers = peers_on(fresh_host(), 2)
    old = {"RLX_PLAN": "old", "RLX_KEY_FILE": str(new_key(tmp_path / "old"))}
    new = {"RLX_KEY_FILE": str(key_file)}
    longer_than_a_refusal = {"RLX_JOIN_TIMEOUT": str(3 * QUICK.refused_s)}
    with ThreadPoolExecutor() as pool:
        one = pool.submit(node(peers, 1, **new).connect)
        with pytest.raises(JoinTimeout, match="rank 1 holds another key"):
            node(peers, 0, **old, **longer_than_a_refusal).connect()
        working([node(peers, 0, **new).connect(), one.result()])


@pytest.mark.parametrize("keyless", [0, 1])
def test_a_rank_without_a_key_is_refused_by_one_with(key_file: Path, keyless: int) -> None:
    """Security is one of the things all ranks must have alike; who has a key believes no word."""
    peers = peers_on(fresh_host(), 2)
    told = [{"RLX_KEY_FILE": str(key_file), "RLX_JOIN_TIMEOUT": "1"} for _ in peers]
    told[keyless]["RLX_SECURITY"] = "none"
    zero, one = joined([node(peers, rank, **told[rank]) for rank in range(2)])

    assert isinstance(one, IdentityMismatch)
    assert set(one.ours) == {"security"}
    if keyless == 0:
        assert isinstance(zero, IdentityMismatch)
    else:
        assert isinstance(zero, JoinTimeout)
        assert "security here is 'psk', there 'none'" in zero.missing[1]


def test_who_is_refused_by_another_rank_than_0_is_started_again(
    tmp_path: Path, key_file: Path
) -> None:
    """The rank with the wrong key ends with 78; the others can form a group with its successor."""
    peers = peers_on(fresh_host(), 3)
    told = [{"RLX_KEY_FILE": str(key_file), "RLX_JOIN_TIMEOUT": "3"} for _ in peers]
    told[1] = {"RLX_KEY_FILE": str(new_key(tmp_path / "wrong")), "RLX_JOIN_TIMEOUT": "3600"}
    zero, one, two = joined([node(peers, rank, **told[rank]) for rank in range(3)])

    assert isinstance(one, WrongKey)
    assert [type(error) for error in (zero, two)] == [JoinTimeout, JoinTimeout]
    assert "rank 1 holds another key" in zero.missing[1]


OTHER_VERSION = 9


@contextlib.contextmanager
def seeming_newer(peer: str) -> Iterator[str]:
    """Yield an address that leads to *peer*; on the way every HELLO gets another version."""
    host, _, port = peer.rpartition(":")

    def meet(dialler: socket.socket) -> None:
        with dialler, dial(host, int(port)) as acceptor:
            for source, to in ((dialler, acceptor), (acceptor, dialler)):
                start = source.recv(8, socket.MSG_WAITALL)
                to.sendall(start[:4] + bytes([OTHER_VERSION]) + start[5:])

    def relay() -> None:
        # Closing the listener ends the thread; a rank that has left ends one meeting.
        while True:
            try:
                dialler, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError):
                meet(dialler)

    with socket.create_server((host, 0)) as listener:
        thread = threading.Thread(target=relay)
        thread.start()
        try:
            yield f"{host}:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("security", ["psk", "none"])
def test_another_wire_version_is_said_on_both_ends(key_file: Path, security: str) -> None:
    """With both values and the other's address; a version is no secret, so no key proves it."""
    peers = peers_on(fresh_host(), 2)
    told = {"RLX_JOIN_TIMEOUT": "1", "RLX_SECURITY": security, "RLX_KEY_FILE": str(key_file)}
    with seeming_newer(peers[0]) as newer:
        zero, one = joined([node(peers, 0, **told), node([newer, peers[1]], 1, **told)])

    assert isinstance(one, IdentityMismatch)
    assert str(one) == (
        f"{newer}: rank 0 does not belong to this group: wire version here is 1, there 9"
    )
    said = r"127\.0\.0\.1:\d+: a rank does not belong .* wire version here is 1, there 9"
    if security == "none":
        assert isinstance(zero, IdentityMismatch)
        assert re.match(said, str(zero))
    else:
        assert isinstance(zero, JoinTimeout)
        assert re.search(said, zero.turned_away[0])
