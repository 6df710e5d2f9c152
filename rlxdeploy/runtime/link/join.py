"""Bring-up on the native wire: rank 0 says who the group is.

Once rank 0 has a link to every rank it names them all by their incarnations.  Links to incarnations
it did not name are closed and made again; when each rank has said that it has all its links, rank 0
lets all go.  So a rank that restarts meanwhile is in the group on every rank or on none.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from typing import Any, Dict, NamedTuple, NoReturn, Sequence

from rlxdeploy.runtime.errors import JoinTimeout, PeerLost, WireError
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.assembly import Assembly, Link
from rlxdeploy.runtime.link.form import Onlooker, Place
from rlxdeploy.runtime.link.sockets import is_open, why
from rlxdeploy.runtime.link.tcp import Connection
from rlxdeploy.runtime.vocabulary import Op
from rlxdeploy.runtime.wire.muster import (
    Muster,
    crowded,
    decode_roster,
    decode_wait,
    encode,
    encode_roster,
    encode_wait,
)

_TOKEN_BYTES = 16


class Formed(NamedTuple):
    """A connection for every rank this one has a link to, and whether ranks share cores."""

    connections: Dict[int, Connection]
    crowded: bool


class Joining:
    """One rank's part in forming a native group; `run` may be called again after a failure."""

    def __init__(
        self, place: Place, assembly: Assembly, limits: Limits, onlooker: Onlooker
    ) -> None:
        self._place, self._assembly = place, assembly
        self._limits, self._onlooker = limits, onlooker
        self._muster = Muster("", (), crowded=False)
        self._gone = False
        self._elsewhere: Dict[int, str] = {}

    def run(self, deadline: float, seconds: float) -> Formed:
        """Return the links of the group.

        Raises HandshakeRefused where rank 0 keeps refusing this rank, or at the *deadline* where
        the refusal of a missing rank counts (see Verdict), else JoinTimeout; at any time PeerLost
        where a rank is lost the moment the group has formed.
        """
        assembly = self._assembly
        assembly.start()
        self._muster, self._gone = Muster("", (), crowded=False), self._place.world == 1
        self._elsewhere = {}
        told: Sequence[int] = ()
        try:
            while not self._gone:
                missing = tuple(self._missing())
                if missing and missing != told:
                    told = missing
                    self._onlooker.missing(told)
                now = time.monotonic()
                self._hope(now, deadline, seconds)
                for rank, link in assembly.turn(now, deadline):
                    self._hear(rank, link)
                self._go_on()
        except BaseException:
            assembly.hang_up()
            raise
        assembly.strangers.sum_up()
        links, assembly.links = assembly.links, {}
        assembly.hang_up()
        connections = {rank: Connection(link.sock, link.address) for rank, link in links.items()}
        return Formed(connections, self._muster.crowded)

    def close(self) -> None:
        """Stop listening and dialling; links handed out are not touched."""
        self._assembly.close()

    def _hope(self, now: float, deadline: float, seconds: float) -> None:
        """Raise where waiting any longer is of no use."""
        if self._assembly.verdict.final is not None:
            raise self._assembly.verdict.final
        if now >= deadline:
            self._raise_late(seconds)

    def _missing(self) -> Dict[int, str]:
        """Return who is missing here or, as it last said, at rank 0, and why."""
        said = {rank: f"rank 0 says: {reason}" for rank, reason in self._elsewhere.items()}
        return {**said, **self._assembly.roster.reasons()}

    def _hear(self, rank: int, link: Link) -> None:
        """Send what waits, take in what came; part where nothing more can come."""
        try:
            _push(link)
            if self._place.rank == 0 or rank == 0:
                self._read(rank, link)
            else:
                link.ended = not is_open(link.sock)
        except BlockingIOError:
            return
        except OSError as error:
            self._assembly.part(rank, link, why(error))
        except WireError as error:
            self._assembly.part(rank, link, str(error))

    def _is_ready(self) -> bool:
        """Whether rank 0 may have let the group go, so that a rank may have done its part and left.

        What it sent then still waits in the link; rank 0 takes back the roster where it was lost.
        """
        leader = self._assembly.links.get(0)
        return leader is not None and leader.ready

    def _read(self, rank: int, link: Link) -> None:
        while not self._gone:
            data = link.sock.recv(link.mail.wanted)
            if not data:
                raise WireError("it closed the connection")
            message = link.mail.feed(data)
            if message is not None:
                self._take(rank, link, *message)

    def _take(self, rank: int, link: Link, op: Op, content: Any) -> None:  # noqa: ANN401 - as read
        if rank and op == Op.READY:
            link.ready = content == link.named
        elif rank == 0 and op == Op.WAIT:
            self._elsewhere, link.muster, link.ready = decode_wait(content), None, False
        elif rank == 0 and op == Op.ROSTER:
            self._elsewhere, link.muster, link.ready = {}, decode_roster(content), False
            if len(link.muster.incarnations) != self._place.world:
                raise WireError(f"it named a group of {len(link.muster.incarnations)} ranks")
        elif rank == 0 and op == Op.GO and link.muster and content == link.muster.token:
            self._depart(link.muster)
        else:
            raise WireError(f"it said {op.name} out of turn")

    def _depart(self, muster: Muster) -> None:
        for rank, reason in self._assembly.roster.reasons().items():
            raise PeerLost(rank, "the group has just formed", "joining", reason)
        self._muster, self._gone = muster, True

    def _part_with_ended(self) -> None:
        for rank, link in tuple(self._assembly.links.items()):
            if link.ended:
                self._assembly.part(rank, link, "it closed the connection")

    def _go_on(self) -> None:
        if self._place.rank == 0:
            self._lead()
            return
        if not self._is_ready() and not self._gone:
            self._part_with_ended()
        leader = self._assembly.links.get(0)
        if leader is not None and leader.muster is not None and not self._gone:
            self._follow(leader, leader.muster)

    def _lead(self) -> None:
        """As rank 0: name the group once all are here, and let it go once all are ready."""
        links, roster = self._assembly.links, self._assembly.roster
        if not roster.complete:
            self._muster = Muster("", (), crowded=False)
            self._tell_who_is_missing(roster.reasons())
            return
        peers = [self._assembly.own, *(links[rank].peer for rank in sorted(links))]
        names = tuple(peer.incarnation for peer in peers)
        if self._muster.incarnations != names:
            self._muster = Muster(os.urandom(_TOKEN_BYTES).hex(), names, crowded(peers))
        for link in links.values():
            if link.named != self._muster.token:
                link.named, link.ready = self._muster.token, False
                link.out += encode_roster(self._muster)
        if all(link.ready for link in links.values()):
            self._let_go(links)

    def _tell_who_is_missing(self, reasons: Dict[int, str]) -> None:
        for link in self._assembly.links.values():
            # Strangers change the reasons at will; what is unsent must not pile up meanwhile.
            if not link.out and (link.named or link.told != reasons):
                link.named, link.told = "", reasons
                link.out += encode_wait(reasons)

    def _follow(self, leader: Link, muster: Muster) -> None:
        """As any other rank: part with who was not named, and say so once all links are there."""
        for rank, link in tuple(self._assembly.links.items()):
            if link.peer.incarnation != muster.incarnations[rank]:
                self._assembly.part(rank, link, "that incarnation is not in the group")
        if self._assembly.roster.complete and not leader.ready:
            leader.ready = True
            leader.out += encode(Op.READY, muster.token)

    def _let_go(self, links: Dict[int, Link]) -> None:
        """Hand the last words of rank 0 to the kernel: they are few, and all read them."""
        self._gone = True
        until = time.monotonic() + self._limits.linger_s
        for link in links.values():
            link.out += encode(Op.GO, self._muster.token)
            while link.out and time.monotonic() < until:
                poll = select.poll()
                poll.register(link.sock, select.POLLOUT)
                poll.poll(max(1, int((until - time.monotonic()) * 1000)))
                try:
                    _push(link)
                except OSError:
                    # The group's first call says who was lost.
                    break

    def _raise_late(self, seconds: float) -> NoReturn:
        absent = self._assembly.roster.missing
        overdue = self._assembly.verdict.overdue(absent, time.monotonic())
        if overdue is not None:
            raise overdue
        strangers = self._assembly.strangers
        missing = self._missing() or {0: "it has not said that the group is whole"}
        raise JoinTimeout(seconds, missing, strangers.count, strangers.lines())


def _push(link: Link) -> None:
    """Send what the kernel takes; what it does not must not keep what came from being read."""
    with contextlib.suppress(BlockingIOError):
        if link.out:
            link.out = link.out[link.sock.send(link.out) :]
