"""The connections of one rank while a native group forms: dialling, letting in, parting.

Everything happens at once: lower ranks are dialled (again, until they are there), higher ones are
let in once they have proven themselves, links that end are replaced.
"""

from __future__ import annotations

import os
import select
import socket
import time
from dataclasses import replace
from typing import Any, Dict, List, Optional, Set, Tuple

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.congestion import is_here, prefer_local, restore_default
from rlxdeploy.runtime.link.dial import Dial
from rlxdeploy.runtime.link.doorstep import Doorstep
from rlxdeploy.runtime.link.form import Onlooker, Place
from rlxdeploy.runtime.link.meeting import Meeting, Met, Secrets
from rlxdeploy.runtime.link.sockets import is_open
from rlxdeploy.runtime.link.strangers import Strangers
from rlxdeploy.runtime.link.verdict import Verdict
from rlxdeploy.runtime.roster import Roster
from rlxdeploy.runtime.wire.identity import HandshakeRefused, Identity
from rlxdeploy.runtime.wire.muster import Muster, MusterReader

_ENDED = getattr(select, "POLLRDHUP", 0)
_INCARNATION_BYTES = 16


class Link:
    """An open connection to a rank that has proven itself, and what has been said on it.

    Only rank 0 speaks and is spoken to: it names a group (*muster*, or its token as *named*) or
    says who is missing (*told*); the others say that they are *ready* for it.  One that has *ended*
    is listened to no more: it counts until it is known whether the group had formed before.
    """

    def __init__(self, sock: socket.socket, address: str, peer: Identity) -> None:
        self.sock, self.address, self.peer = sock, address, peer
        self.mail, self.out = MusterReader(), b""
        self.named, self.ready, self.ended = "", False, False
        self.muster: Optional[Muster] = None
        self.told: Dict[int, str] = {}


class Assembly:
    """Who is here: *links* by rank, *roster* with the reasons why others are not.

    *verdict* says which refusals end the join, *strangers* who was turned away.
    """

    def __init__(
        self,
        place: Place,
        listener: Optional[socket.socket],
        secrets: Secrets,
        limits: Limits,
        onlooker: Onlooker,
    ) -> None:
        self._place, self._secrets = place, secrets
        self._limits, self._onlooker = limits, onlooker
        lower = range(min(place.rank, 1) if place.star else place.rank)
        self._awaited = set(range(place.rank + 1, 0 if place.star and place.rank else place.world))
        self._dials = {
            rank: Dial(place.rank, place.peers[rank], limits, place.peer_timeout) for rank in lower
        }
        for dial in self._dials.values():
            dial.prepare = _prepare
        self._doorstep: Optional[Doorstep] = None
        if listener is not None:
            prefer_local(listener)
            self._doorstep = Doorstep(listener, limits, place.peer_timeout, onlooker.noticed)
        self.links: Dict[int, Link] = {}
        self.verdict = Verdict(secrets.own, limits)
        self.roster = Roster(())
        self.strangers = Strangers(onlooker.noticed, limits.max_reasons)
        self._meetings: List[Meeting] = []
        self._told: Set[str] = set()

    @property
    def own(self) -> Identity:
        """Who this rank is at this attempt."""
        return self._secrets.own

    def start(self) -> None:
        """Begin anew, as another incarnation."""
        self.hang_up()
        own = replace(self.own, incarnation=os.urandom(_INCARNATION_BYTES).hex())
        self._secrets = self._secrets._replace(own=own)
        self.verdict.begin()
        self.roster = Roster([*self._dials, *self._awaited])
        for rank in self._awaited:
            self.roster.tried(rank, self._should_come(rank))
        for rank, dial in self._dials.items():
            self.roster.tried(rank, f"dialled {dial.address}: no answer yet")

    def turn(self, now: float, deadline: float) -> List[Tuple[int, Link]]:
        """Wait for the next event and deal with it; return the links on which something came."""
        for rank, dial in self._dials.items():
            if rank not in self.links and dial.wake_at <= now:
                self._dial(rank, dial, now)
        seconds = self._wake_at(now, deadline) - now
        events = dict(self._poller(now).poll(max(1, int(seconds * 1000) + 1)))
        now = time.monotonic()
        heard = [each for each in self.links.items() if each[1].sock.fileno() in events]
        for meeting in tuple(self._meetings):
            if meeting.sock.fileno() in events or meeting.until <= now:
                self._proceed(meeting, now)
        if self._doorstep is not None and self._doorstep.fileno() in events:
            self._admit(self._doorstep, now)
        # Whoever came again meanwhile has another link now.
        return [(rank, link) for rank, link in heard if self.links.get(rank) is link]

    def part(self, rank: int, link: Link, reason: str) -> None:
        """Close a link and look for its successor."""
        link.sock.close()
        if self.links.get(rank) is not link:
            return
        del self.links[rank]
        said = f"it was at {link.address}, but {reason}"
        self.roster.went(rank, said)
        if rank in self._dials:
            self._dials[rank].fail(time.monotonic(), said)

    def hang_up(self) -> None:
        """Close every connection."""
        for meeting in self._meetings:
            meeting.sock.close()
        for link in self.links.values():
            link.sock.close()
        self.links, self._meetings = {}, []

    def close(self) -> None:
        """Stop listening and dialling."""
        self.hang_up()
        if self._doorstep is not None:
            self._doorstep.listener.close()

    def _should_come(self, rank: int) -> str:
        at = self._doorstep.listener.getsockname() if self._doorstep else ("", 0)
        origin = f"from {self._place.peers[rank].host} " if not self._place.star else ""
        return f"it should dial in {origin}at {Address(at[0], at[1])}, but has not"

    def _poller(self, now: float) -> select.poll:
        poll = select.poll()
        for meeting in self._meetings:
            poll.register(meeting.sock, meeting.events)
        for rank, link in self.links.items():
            if link.ended:
                continue
            spoken = self._place.rank == 0 or rank == 0
            events = _ENDED | (select.POLLIN if spoken else 0) | (select.POLLOUT if link.out else 0)
            poll.register(link.sock, events)
        if self._doorstep is not None and self._doorstep.rest(now) is None:
            poll.register(self._doorstep, select.POLLIN)
        return poll

    def _wake_at(self, now: float, deadline: float) -> float:
        moments: List[float] = [deadline]
        moments += [dial.wake_at for rank, dial in self._dials.items() if rank not in self.links]
        moments += [meeting.until for meeting in self._meetings]
        rest = self._doorstep.rest(now) if self._doorstep else None
        return min([*moments, rest] if rest else moments)

    def _dial(self, rank: int, dial: Dial, now: float) -> None:
        """Begin another attempt, unless one is under way."""
        if any(meeting.dialled == rank for meeting in self._meetings):
            dial.wake_at = now + self._limits.dial_s
            return
        failed = dial.start(now)
        if failed is not None or dial.sock is None:
            self._in_vain(rank, f"dialled {dial.address}: {failed}")
            return
        sock, dial.sock = dial.sock, None
        until = now + self._limits.dial_s
        self._meetings.append(Meeting(sock, dial.address, self._secrets, until, dialled=rank))

    def _admit(self, doorstep: Doorstep, now: float) -> None:
        """Begin to talk to who stands there; the oldest guest makes room where it is full."""
        for sock, where in doorstep.accept(now):
            if not is_here(where, sock.family):
                restore_default(sock)
            address = Address(str(where[0]), int(where[1]))
            until = now + self._limits.hello_s
            self._meetings.append(Meeting(sock, address, self._secrets, until))
            guests = [meeting for meeting in self._meetings if meeting.dialled is None]
            if len(guests) > self._limits.max_guests:
                self._drop(guests[0], "too many knocked", now)

    def _proceed(self, meeting: Meeting, now: float) -> None:
        done = meeting.proceed()
        if done is Met.PROVEN:
            self._judge(meeting)
        elif done is Met.DONE:
            self._link(meeting)
        elif isinstance(done, HandshakeRefused):
            self._drop(meeting, str(done), now)
            self._refused(meeting, done, now)
        elif isinstance(done, str):
            self._drop(meeting, done, now)
        elif meeting.until <= now:
            self._drop(meeting, self._silence(meeting), now)

    def _judge(self, meeting: Meeting) -> None:
        """Let a rank in that is awaited and not here yet."""
        reason = self._objection(meeting.peer)
        if reason is None:
            meeting.welcome()
            self._link(meeting)
            return
        self._meetings.remove(meeting)
        self.strangers.turned_away(meeting.address, reason)
        meeting.refuse(reason)

    def _objection(self, peer: Identity) -> Optional[str]:
        if peer.rank not in self._awaited:
            return f"rank {self._place.rank} is not for rank {peer.rank} to dial"
        there = self.links.get(peer.rank)
        if there is None:
            return None
        if there.peer.incarnation != peer.incarnation and is_open(there.sock):
            return (
                f"rank {peer.rank} is here already: incarnation {there.peer.incarnation} at "
                f"{there.address}, this one is {peer.incarnation}"
            )
        self.part(peer.rank, there, "it came again")
        return None

    def _link(self, meeting: Meeting) -> None:
        self._meetings.remove(meeting)
        rank = meeting.peer.rank
        by_peers = meeting.dialled is not None or not self._place.star
        address = str(self._place.peers[rank] if by_peers else meeting.address)
        self.links[rank] = Link(meeting.sock, address, meeting.peer)
        self.roster.came(rank, address)
        self.verdict.came(rank)

    def _refused(self, meeting: Meeting, error: HandshakeRefused, now: float) -> None:
        """Remember why a rank, or who says it is one, is not in the group."""
        by = meeting.peer if meeting.known else None
        if meeting.dialled is None and by is not None and by.rank in self._awaited:
            who = f"a process at {meeting.address.host} that says it is rank {by.rank}"
            said = f"{self._should_come(by.rank)}; {who} was refused: {error}"
            self.roster.tried(by.rank, said)
        error.address = str(meeting.address)
        self.verdict.refused(error, meeting.dialled, by, now)
        if meeting.dialled is not None:
            self._notice(str(error))

    def _silence(self, meeting: Meeting) -> str:
        if meeting.dialled is not None:
            return "it does not answer"
        return f"it did not prove itself within {self._limits.hello_s:g} s"

    def _drop(self, meeting: Meeting, reason: str, now: float) -> None:
        self._meetings.remove(meeting)
        meeting.sock.close()
        if meeting.dialled is None:
            self.strangers.turned_away(meeting.address, reason)
            return
        dial = self._dials[meeting.dialled]
        self._in_vain(meeting.dialled, f"dialled {dial.address}: {dial.fail(now, reason)}")

    def _in_vain(self, rank: int, why: str) -> None:
        self.roster.tried(rank, why)
        self._onlooker.in_vain(rank, why)

    def _notice(self, text: str) -> None:
        """Tell the onlooker once: who was refused is dialled again at once."""
        if text not in self._told and len(self._told) < self._limits.max_reasons:
            self._told.add(text)
            self._onlooker.noticed(text)


def _prepare(sock: socket.socket, where: Tuple[Any, ...]) -> None:
    if is_here(where, sock.family):
        prefer_local(sock)
