"""Strangers dial a rank while its group forms: each is refused, counted and named."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple

import pytest

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.bringup import Bringup
from rlxdeploy.runtime.errors import GroupError, JoinTimeout
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.form import Onlooker
from rlxdeploy.runtime.link.strangers import Strangers
from rlxdeploy.runtime.settings import Settings
from rlxdeploy.runtime.wire.handshake import Handshake, parse_key
from rlxdeploy.runtime.wire.identity import HandshakeRefused, Identity
from tests.runtime.cluster import dial, environment, fresh_host, in_threads, outcome, peers_on
from tests.runtime.native.joining import new_key, node, working

PROOF = 2
Change = Callable[[bytes], bytes]


class Leader(Onlooker):
    """Rank 0 of two in the middle of its join; *said* is what it has told of it."""

    def __init__(self, security: str, key_file: Path, seconds: str) -> None:
        self.peers = peers_on(fresh_host(), 2)
        self.said: List[str] = []
        self.told = {
            "RLX_SECURITY": security,
            "RLX_KEY_FILE": str(key_file),
            "RLX_JOIN_TIMEOUT": seconds,
        }
        self.key = parse_key(key_file.read_text())
        more = {"RLX_WIRE": "native", "RLX_JOB": "job", "RLX_PLAN": "plan", **self.told}
        settings = Settings.from_env(environment(0, self.peers, **more))
        self._bringup = Bringup(settings, Limits(), self)
        self._pool = ThreadPoolExecutor(1)
        self.joining: Future[Any] = self._pool.submit(outcome(self._bringup.form))

    def noticed(self, text: str) -> None:
        self.said.append(text)

    def knock(self) -> socket.socket:
        host, _, port = self.peers[0].rpartition(":")
        return dial(host, int(port))

    @property
    def missed(self) -> Identity:
        """Who rank 0 waits for."""
        return Identity("job", "plan", 2, 1, os.urandom(16).hex(), self.told["RLX_SECURITY"])

    def close(self) -> None:
        self._pool.shutdown()
        self._bringup.close()


def shake(sock: socket.socket, own: Identity, key: bytes, change: Change = bytes) -> bytes:
    """Say who one is to rank 0, each frame changed on its way; return what was sent."""
    talk = Handshake(own, key, os.urandom(32), dialled=0)
    saying, sent, over = talk.opening, b"", False
    while saying:
        sock.sendall(change(saying))
        sent += change(saying)
        try:
            saying = b"" if over else reply(talk, sock)
        except HandshakeRefused as error:
            saying, over = error.reply, True
    return sent


def reply(talk: Handshake, sock: socket.socket) -> bytes:
    """Return what *talk* says to what comes next, nothing at the end."""
    saying = b""
    while talk.wanted and not saying:
        heard = sock.recv(talk.wanted)
        if not heard:
            break
        saying = talk.receive(heard)
    return saying


def frame(sock: socket.socket) -> bytes:
    """Receive one frame."""
    start = sock.recv(8, socket.MSG_WAITALL)
    return start + sock.recv(int.from_bytes(start[6:8], "little"), socket.MSG_WAITALL)


def shown_out(sock: socket.socket) -> bool:
    """Whether the other end closes *sock*, whatever it says before."""
    with contextlib.suppress(ConnectionResetError):
        while sock.recv(4096):
            pass
    return True


Deed = Callable[[Leader, socket.socket], object]


def replayed(leader: Leader, sock: socket.socket) -> None:
    """Say again what the missed rank itself has said, word for word."""
    with leader.knock() as first:
        recorded = shake(first, leader.missed, leader.key)
        assert frame(first)[:4] != b"RLXN", "it was let in: the next word is of the group"
    sock.sendall(recorded)


def reflected(leader: Leader, sock: socket.socket) -> None:
    """Answer the challenge with rank 0's own answer to ours."""
    sock.sendall(Handshake(leader.missed, b"", os.urandom(32), dialled=0).opening)
    frame(sock)
    sock.sendall(frame(sock))


def truncated(leader: Leader, sock: socket.socket) -> None:
    """Send half of the right proof."""

    def halved(said: bytes) -> bytes:
        return said[:6] + b"\x10\0" + said[8:24] if said[5] == PROOF else said

    shake(sock, leader.missed, leader.key, halved)


def of_version_9(leader: Leader, sock: socket.socket) -> None:
    """Say the right HELLO with another version before it."""
    sock.sendall(b"RLXN\x09" + Handshake(leader.missed, b"", bytes(32), dialled=0).opening[5:])


def as_one(**different: Any) -> Deed:  # noqa: ANN401 - the fields of an identity
    """Return the deed of a process that holds the key and is different."""
    return lambda leader, sock: shake(sock, replace(leader.missed, **different), leader.key)


class Attack(NamedTuple):
    """What a stranger does, why it is refused, and how a join ends to which nobody else comes."""

    deed: Deed
    reason: str
    code: int = 75
    security: str = "psk"


OTHER_KEY = "rank 1 holds another key than this rank; every rank of a job needs the same"
ATTACKS: Dict[str, Attack] = {
    "a recorded handshake": Attack(replayed, OTHER_KEY),
    "a reflected challenge": Attack(reflected, OTHER_KEY),
    "a truncated MAC": Attack(truncated, OTHER_KEY),
    "another key": Attack(lambda to, sock: shake(sock, to.missed, b"x" * 32), OTHER_KEY),
    "no key": Attack(as_one(security="none"), "security here is 'psk', there 'none'"),
    "an older plan": Attack(as_one(plan="old"), "plan here is 'plan', there 'old'", 78),
    "another job": Attack(as_one(job="other"), "job here is 'job', there 'other'", 78),
    "a wrong world": Attack(as_one(world=3), "world here is 2, there 3", 78),
    "a wrong rank": Attack(as_one(rank=7), "rank here is 0, there 7"),
    "another version": Attack(of_version_9, "wire version here is 1, there 9"),
    "a browser": Attack(lambda _, sock: sock.sendall(b"GET / HTTP/1.1\r\n\r\n"), "does not speak"),
}
KEYLESS: Dict[str, Attack] = {
    "an older plan, without keys": ATTACKS["an older plan"]._replace(security="none"),
    "another version, without keys": ATTACKS["another version"]._replace(security="none", code=78),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_stranger_is_refused_counted_and_named_while_the_group_forms(
    tmp_path: Path, attack: Attack
) -> None:
    """The first is named with its address at once, the next is counted, and the group forms."""
    with contextlib.closing(Leader("psk", new_key(tmp_path / "key"), "30")) as leader:
        strangers = [attacked(leader, attack) for _ in range(2)]
        one = node(leader.peers, 1, **leader.told).connect()
        working([leader.joining.result(), one])

    reason = f".*{re.escape(attack.reason)}"
    first, last = leader.said
    assert re.match(f"turned away {strangers[0]}: {reason}", first)
    assert re.match(f".* group formed: 2 times, last from {strangers[1]}: {reason}", last)


def attacked(leader: Leader, attack: Attack) -> str:
    """Let a stranger come and be shown out; return its address."""
    with leader.knock() as sock:
        attack.deed(leader, sock)
        assert shown_out(sock)
        host, port = sock.getsockname()
        return f"{host}:{port}"


def test_a_program_finds_strangers_in_its_log(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever imports the runtime gets a warning, and decides where it goes."""
    peers = peers_on(fresh_host(), 2)
    host, _, port = peers[0].rpartition(":")
    with ThreadPoolExecutor(1) as pool:
        zero = pool.submit(node(peers, 0).connect)
        with dial(host, int(port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert shown_out(stranger)
        working([node(peers, 1).connect(), zero.result()])

    (record,) = [each for each in caplog.records if each.name == "rlxdeploy.runtime"]
    assert record.levelname == "WARNING"
    assert re.match(r"turned away 127\.0\.0\.1:\d+: it does not speak", record.getMessage())


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, GroupError]:
    """Return how rank 0 ends where a stranger comes instead of the rank it waits for.

    All wait at once: the deadline leaves a busy machine the time to be rude.
    """
    key_file = new_key(tmp_path_factory.mktemp("keys") / "key")

    def end(attack: Attack) -> GroupError:
        with contextlib.closing(Leader(attack.security, key_file, "3")) as leader:
            attacked(leader, attack)
            error: GroupError = leader.joining.result()
            return error

    cases = {**ATTACKS, **KEYLESS}
    return dict(zip(cases, in_threads([partial(end, attack) for attack in cases.values()])))


@pytest.mark.parametrize("name", [*ATTACKS, *KEYLESS])
def test_who_has_proven_nothing_does_not_decide_how_a_join_ends(
    ends: Dict[str, GroupError], name: str
) -> None:
    """78, after which nobody starts rank 0 again, is for ranks of this job that are different.

    Anybody else is named in a JoinTimeout.  Without keys nobody can prove more than a word.
    """
    attack, ended = {**ATTACKS, **KEYLESS}[name], ends[name]

    assert ended.exit_code == attack.code, ended
    assert attack.reason in str(ended)
    assert re.search(r"127\.0\.0\.1:\d+: ", str(ended))
    if attack.code == 75:
        assert isinstance(ended, JoinTimeout)
        assert (list(ended.missing), ended.strangers) == ([1], 1)


def test_what_is_kept_of_strangers_is_bounded() -> None:
    """The latest reasons stay with their counts, and only so many lines are said."""
    said: List[str] = []
    strangers = Strangers(said.append, most=3)
    for number in range(1000):
        strangers.turned_away(Address("10.0.0.9", number), f"it said {number} {'x' * 9000}")
        strangers.turned_away(Address("10.0.0.1", number), "another key")
    strangers.sum_up()

    assert len(said) == 3 + 1
    assert strangers.count == 2000
    assert strangers.lines()[0] == "1000 times, last from 10.0.0.1:999: another key"
    assert strangers.lines()[-1] == "998 for other reasons before"
    assert len(strangers.lines()) == 3 + 1
    assert max(map(len, strangers.lines())) < 400
