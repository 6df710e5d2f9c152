"""What a rank does while others do not: it sleeps, and hears whatever else there is to hear."""

from __future__ import annotations

import os
import select
import socket
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any, Callable, Iterator, List, Sequence, Tuple

import pytest

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.assembly import Assembly, Link
from rlxdeploy.runtime.link.form import Onlooker, Place
from rlxdeploy.runtime.link.join import Joining
from rlxdeploy.runtime.link.listener import listen
from rlxdeploy.runtime.link.meeting import Secrets
from rlxdeploy.runtime.vocabulary import Op
from rlxdeploy.runtime.wire.handshake import Handshake
from rlxdeploy.runtime.wire.identity import Identity
from rlxdeploy.runtime.wire.muster import Muster, encode, encode_roster, encode_wait
from tests.runtime.cluster import PATIENCE_S, free_ports, fresh_host
from tests.runtime.native.joining import QUICK

# So long a rank has nothing to do; one that does not sleep has thousands of turns meanwhile.
IDLE_S = 0.3
FEW_TURNS = 10
# What a rank is told of so many that are missing, with such names, is more than any kernel takes
# of one that asked for small buffers.
CROWD, NAME = 1000, "a" * 200
TIGHT = replace(QUICK, socket_buffer=1)


class Counted(Assembly):
    """The connections of a rank, and how often it has looked at them."""

    turns = 0

    def turn(self, now: float, deadline: float) -> List[Tuple[int, Link]]:
        self.turns += 1
        return super().turn(now, deadline)


class Hand:
    """A rank whose connections are real and which says only what a test makes it say."""

    def __init__(self, rank: int, peers: Sequence[Address], limits: Limits = QUICK) -> None:
        self.place = Place(rank, len(peers), star=False, peers=peers, peer_timeout=10.0)
        self.identity = Identity("job", "plan", len(peers), rank, "", "none")
        listener = listen(peers[rank], limits, open_net=False)
        secrets = Secrets(self.identity, b"")
        self.assembly = Counted(self.place, listener, secrets, limits, Onlooker())
        self.assembly.start()
        self._limits = limits

    def joining(self, onlooker: Onlooker) -> Joining:
        """Return what makes it join by itself."""
        return Joining(self.place, self.assembly, self._limits, onlooker)

    def turn(self) -> List[Tuple[int, Link]]:
        now = time.monotonic()
        return self.assembly.turn(now, now + 0.01)

    def say(self, rank: int, words: bytes) -> None:
        assert self.assembly.links[rank].sock.send(words) == len(words)

    def hear(self, rank: int) -> Tuple[Op, Any]:
        """Return the next message of *rank*."""
        link, said = self.assembly.links[rank], None
        link.sock.settimeout(PATIENCE_S)
        while said is None:
            said = link.mail.feed(link.sock.recv(link.mail.wanted))
        return said


@pytest.fixture
def hands() -> Iterator[Callable[..., List[Hand]]]:
    """Give ranks of one job, all of whose sockets are closed in the end."""
    made: List[Hand] = []

    def make(world: int, alive: int, limits: Limits = QUICK) -> List[Hand]:
        host = fresh_host()
        peers = [Address(host, port) for port in free_ports(alive, host)]
        peers += [Address(NAME, 1)] * (world - alive)
        made.extend(Hand(rank, peers, limits) for rank in range(alive))
        return made

    yield make
    for each in made:
        each.assembly.close()


def until(met: Callable[[], Any], *turning: Hand) -> None:
    """Let *turning* have their turns until something is met."""
    deadline = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < deadline
        for each in turning:
            each.turn()


def names(zero: Hand, token: str) -> Muster:
    """Return the group of rank 0 and all it has a link to."""
    peers = [zero.assembly.links[rank].peer for rank in sorted(zero.assembly.links)]
    own = zero.assembly.own.incarnation
    return Muster(token, (own, *(peer.incarnation for peer in peers)), crowded=False)


def test_a_rank_that_is_ready_sleeps_although_another_has_ended(
    hands: Callable[..., List[Hand]],
) -> None:
    """Only rank 0 knows whether the group has formed; if not, the other is dialled again."""
    zero, one, two = hands(3, 3)
    joining = two.joining(Onlooker())
    with ThreadPoolExecutor(1) as pool:
        forming = pool.submit(joining.run, time.monotonic() + PATIENCE_S, PATIENCE_S)
        until(lambda: zero.assembly.roster.complete and one.assembly.roster.complete, zero, one)
        zero.say(2, encode_roster(names(zero, "first")))
        assert zero.hear(2) == (Op.READY, "first")

        one.assembly.part(2, one.assembly.links[2], "it is to come again")
        before = two.assembly.turns
        assert not wait([forming], IDLE_S).done
        assert two.assembly.turns - before < FEW_TURNS

        zero.say(2, encode_wait({1: "it has left"}))
        until(lambda: one.assembly.roster.complete, one)
        zero.say(2, encode_roster(names(zero, "second")))
        assert zero.hear(2) == (Op.READY, "second")
        zero.say(2, encode(Op.GO, "second"))
        formed = forming.result(PATIENCE_S)
    for connection in formed.connections.values():
        connection.sock.close()
    assert sorted(formed.connections) == [0, 1]


def test_a_rank_that_comes_again_is_heard_on_its_new_link_alone(
    hands: Callable[..., List[Hand]],
) -> None:
    """That the old one ended is news of the same moment, and about nobody."""
    _, one, two = hands(3, 3)
    until(lambda: 2 in one.assembly.links, one, two)
    old = one.assembly.links[2]
    again = replace(two.identity, incarnation="b" * 32)
    talk = Handshake(again, b"", os.urandom(32), dialled=1)
    with socket.create_connection(one.place.peers[1], PATIENCE_S) as sock:
        sock.sendall(talk.opening)
        until(lambda: select.select([sock], [], [], 0)[0], one)
        proof = b""
        while not proof:
            proof = talk.receive(sock.recv(talk.wanted))
        two.assembly.close()
        sock.sendall(proof)
        heard = one.turn()

    assert one.assembly.links[2].peer.incarnation == again.incarnation
    assert old.sock.fileno() == -1
    assert not heard


class Here(Exception):
    """Ends a join at the moment that a test waits for."""


class Leaves(Onlooker):
    """Ends the join once rank 1, which was here, is missing again."""

    def __init__(self) -> None:
        self._was_here = False

    def missing(self, ranks: Sequence[int]) -> None:
        if self._was_here and 1 in ranks:
            raise Here
        self._was_here = 1 not in ranks


def test_a_rank_that_does_not_read_is_heard(hands: Callable[..., List[Hand]]) -> None:
    """What rank 0 cannot get rid of keeps it neither from hearing that rank nor from sleeping."""
    zero, one = hands(CROWD, 2, TIGHT)
    joining = zero.joining(Leaves())
    with ThreadPoolExecutor(1) as pool:
        forming = pool.submit(joining.run, time.monotonic() + PATIENCE_S, PATIENCE_S)
        until(lambda: 0 in one.assembly.links, one)
        until(lambda: 1 in zero.assembly.links and zero.assembly.links[1].out, one)
        before = zero.assembly.turns
        assert not wait([forming], IDLE_S).done
        assert zero.assembly.turns - before < FEW_TURNS
        # Each time rank 0 also sends, until the kernel has no room left at all.
        for _ in range(20):
            zero.assembly.links[1].ready = False
            one.say(0, encode(Op.READY, ""))
            until(lambda: zero.assembly.links[1].ready)
        one.say(0, encode(Op.GO, "which is not for rank 1 to say"))
        assert isinstance(forming.exception(PATIENCE_S), Here)
