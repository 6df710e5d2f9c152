"""Bring-up: from settings to one connection for each rank this one has a link to.

Everything happens at once: higher ranks are dialled (again, until they are there), lower ones are
let in, links that end again are replaced.  Nothing is given up before the deadline.
"""

from __future__ import annotations

import select
import time
from typing import Dict, List, NamedTuple, NoReturn, Optional, Sequence, Set

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.errors import JoinTimeout
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.dial import Dial
from rlxdeploy.runtime.link.door import Arrival, Door
from rlxdeploy.runtime.link.firstword import objection
from rlxdeploy.runtime.link.sockets import ENDED, is_open
from rlxdeploy.runtime.link.tcp import Connection
from rlxdeploy.runtime.roster import Roster, awaits, dials


class Onlooker:
    """Is told how the join goes; this one keeps it to itself."""

    def missing(self, ranks: Sequence[int]) -> None:
        """*ranks* have no link yet; called whenever that changes."""

    def in_vain(self, rank: int, why: str) -> None:
        """Dialling *rank* has failed; it is dialled again, and this is called each time."""

    def noticed(self, text: str) -> None:
        """Something else that a person should know has happened."""


class Place(NamedTuple):
    """Who this rank is and where the others are."""

    rank: int
    world: int
    star: bool
    peers: Sequence[Address]
    peer_timeout: float


class Formation:
    """One rank's part in forming the group; `run` may be called again after a failed attempt."""

    def __init__(
        self, place: Place, door: Optional[Door], limits: Limits, onlooker: Onlooker
    ) -> None:
        self._place, self._door, self._onlooker = place, door, onlooker
        self._awaited = awaits(place.rank, place.world, star=place.star)
        self._dials: Dict[int, Dial] = {
            rank: Dial(place.rank, place.peers[rank], limits, place.peer_timeout)
            for rank in dials(place.rank, place.world, star=place.star)
        }
        self._links: Dict[int, Connection] = {}
        # Whom this rank has dialled and who has said nothing yet, as is usual.
        self._unheard: Set[int] = set()
        self._roster = Roster(())

    def run(self, deadline: float, seconds: float) -> Dict[int, Connection]:
        """Return a connection for every rank; JoinTimeout with what was tried for each missing."""
        self._roster = self._new_roster()
        told: Sequence[int] = ()
        try:
            while not self._roster.complete:
                if self._roster.missing != told:
                    told = self._roster.missing
                    self._onlooker.missing(told)
                now = time.monotonic()
                if now >= deadline:
                    self._raise_late(seconds)
                self._turn(now, deadline)
        except BaseException:
            self._hang_up()
            raise
        if self._door:
            self._door.strangers.sum_up()
        links, self._links = self._links, {}
        return links

    def close(self) -> None:
        """Stop listening and dialling; links handed out are not touched."""
        self._hang_up()
        if self._door:
            self._door.close()

    def _new_roster(self) -> Roster:
        roster = Roster([*self._dials, *self._awaited])
        for rank in self._awaited:
            roster.tried(rank, self._should_come(rank))
        for rank, dial in self._dials.items():
            roster.tried(rank, f"dialled {dial.address}: no answer yet")
        return roster

    def _should_come(self, rank: int) -> str:
        at = self._door.listener.getsockname() if self._door else ("", 0)
        origin = f"from {self._place.peers[rank].host} " if not self._place.star else ""
        return f"it should dial in {origin}at {Address(at[0], at[1])}, but has not"

    def _turn(self, now: float, deadline: float) -> None:
        """Wait for the next event and deal with it."""
        for rank, dial in self._dials.items():
            if rank not in self._links and dial.wake_at <= now:
                self._redial(rank, dial, now)
        seconds = self._wake_at(now, deadline) - now
        events = dict(self._poller(now).poll(max(1, int(seconds * 1000) + 1)))
        now = time.monotonic()
        for rank, dial in self._dials.items():
            if dial.sock is not None and dial.sock.fileno() in events:
                self._connected(rank, dial, now)
        for rank, link in tuple(self._links.items()):
            # That a dial can be written to, now that it is a link, says nothing of what came on it.
            if events.get(link.sock.fileno(), 0) & ~select.POLLOUT:
                self._look(rank, link, now)
        if self._door:
            self._answer_door(self._door, events, now)

    def _poller(self, now: float) -> select.poll:
        poll = select.poll()
        for rank, link in self._links.items():
            poll.register(link.sock, ENDED | (select.POLLIN if rank in self._unheard else 0))
        for dial in self._dials.values():
            if dial.sock is not None:
                poll.register(dial.sock, select.POLLOUT)
        if self._door:
            for fd in self._door.watched(now):
                poll.register(fd, select.POLLIN)
        return poll

    def _wake_at(self, now: float, deadline: float) -> float:
        moments: List[float] = [deadline]
        moments += [dial.wake_at for rank, dial in self._dials.items() if rank not in self._links]
        at_door = self._door.wake_at(now) if self._door else None
        if at_door is not None:
            moments.append(at_door)
        return min(moments)

    def _redial(self, rank: int, dial: Dial, now: float) -> None:
        if dial.sock is not None:
            self._failed(rank, dial, dial.fail(now, "it does not answer"))
            return
        self._failed(rank, dial, dial.start(now))

    def _connected(self, rank: int, dial: Dial, now: float) -> None:
        done = dial.finish(now)
        if isinstance(done, str):
            self._failed(rank, dial, done)
        else:
            self._link(rank, Connection(done, str(dial.address)))
            self._unheard.add(rank)

    def _look(self, rank: int, link: Connection, now: float) -> None:
        """Part with a link that has ended, and with whoever answers as no rank does."""
        odd = objection(link.sock, rank) if rank in self._unheard else None
        self._unheard.discard(rank)
        if odd is not None or not is_open(link.sock):
            self._ended(rank, link, odd or "it closed the connection after HELLO", now)

    def _failed(self, rank: int, dial: Dial, reason: Optional[str]) -> None:
        if reason is not None:
            self._in_vain(rank, f"dialled {dial.address}: {reason}")

    def _in_vain(self, rank: int, why: str) -> None:
        self._roster.tried(rank, why)
        self._onlooker.in_vain(rank, why)

    def _link(self, rank: int, link: Connection) -> None:
        self._links[rank] = link
        self._roster.came(rank, link.address)

    def _ended(self, rank: int, link: Connection, why: str, now: float) -> None:
        """Look for the successor of a link that ended before the group was whole."""
        link.sock.close()
        del self._links[rank]
        dial = self._dials.get(rank)
        if dial is None:
            self._roster.went(rank, f"it came from {link.address} and left again")
            return
        self._roster.went(rank, f"dialled {dial.address}: {dial.fail(now, why)}")

    def _answer_door(self, door: Door, events: Dict[int, int], now: float) -> None:
        for fd in [fd for fd in door.waiting() if fd in events]:
            arrival = door.listen_to(fd)
            if arrival is not None:
                self._let_in(door, arrival)
        if door.listener.fileno() in events:
            door.admit(now)
        door.expire(now)

    def _let_in(self, door: Door, arrival: Arrival) -> None:
        rank, there = arrival.rank, self._links.get(arrival.rank)
        if rank not in self._awaited:
            self._refuse(
                door, arrival, f"rank {self._place.rank} of {self._place.world} awaits none"
            )
            return
        if there is not None and is_open(there.sock):
            self._refuse(door, arrival, f"rank {rank} is here already, at {there.address}")
            return
        if there is not None:
            there.sock.close()
        address = arrival.address if self._place.star else self._place.peers[rank]
        self._link(rank, Connection(arrival.sock, str(address)))

    def _refuse(self, door: Door, arrival: Arrival, why: str) -> None:
        """Show a pretender out."""
        arrival.sock.close()
        door.strangers.turned_away(arrival.address, f"it says it is rank {arrival.rank}: {why}")

    def _raise_late(self, seconds: float) -> NoReturn:
        if self._door is None:
            raise JoinTimeout(seconds, self._roster.reasons())
        strangers = self._door.strangers
        raise JoinTimeout(seconds, self._roster.reasons(), strangers.count, strangers.lines())

    def _hang_up(self) -> None:
        for dial in self._dials.values():
            dial.give_up()
        for link in self._links.values():
            link.sock.close()
        self._links = {}
