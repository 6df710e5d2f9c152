"""Finding all ranks of a mesh: each tells everybody on the LAN where it is.

A rank announces itself at a pace of its own, whatever it hears, and reads all that has come before
it sleeps again: where others flood, the datagram that matters is one of thousands.  It goes on
announcing until it has all its links, as whoever comes later must hear it too.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from typing import Callable, Dict, Optional, Set, Tuple

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.errors import WireError
from rlxdeploy.runtime.link.form import Onlooker
from rlxdeploy.runtime.link.sockets import why
from rlxdeploy.runtime.link.udp import Background, Until, bind_udp
from rlxdeploy.runtime.roster import Whereabouts
from rlxdeploy.runtime.wire.beacon import MAX_DATAGRAM, Dialect

# Upstream's pace, and how often it says its words once it has heard all.
_PACE_S = 0.15
_LAST_WORDS = 5
_LAST_WORDS_S = 0.01
# Datagrams that were read a moment ago; a flood of different ones does not grow it further.
_MAX_KNOWN = 4096
_EVERYBODY = "255.255.255.255"
# `in_pktinfo`: any interface, the source address, no destination.
_PKTINFO = struct.Struct("=i4s4s")
_IP_PKTINFO = 8


class Broadcast:
    """Rank *rank*'s announcements of *address* on UDP *port*; raises PortInUse."""

    def __init__(self, rank: int, address: Address, port: int, dialect: Dialect) -> None:
        self._rank, self._address, self._port = rank, address, port
        self._dialect, self._words = dialect, dialect.announce(rank, address)
        self._sock = bind_udp(port, shared=True)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        self._failed: Optional[str] = None
        self._talker: Optional[Background] = None
        self.found = Whereabouts(rank, 1, address)

    def find_all(self, world: int, until: Until, onlooker: Onlooker) -> Tuple[Address, ...]:
        """Return the addresses of all ranks, by rank; JoinTimeout names who is missing."""
        self.found = found = Whereabouts(self._rank, world, self._address)
        told: Tuple[int, ...] = ()
        while found.missing:
            if found.missing != told:
                told = found.missing
                onlooker.missing(told)
            if not until.left:
                raise until.missed(self._reasons(found))
            self._speak()
            self._hear(min(until.deadline, time.monotonic() + _PACE_S), onlooker)
        self._talker = Background("announce", self._announce)
        self._talker.start()
        return found.addresses

    def close(self) -> None:
        """Say it a few times more, then stop."""
        if self._talker is not None:
            self._talker.stop()
            for _ in range(_LAST_WORDS):
                self._speak()
                time.sleep(_LAST_WORDS_S)
        self._sock.close()

    def _announce(self, wait: Callable[[float], object]) -> None:
        self._speak()
        wait(_PACE_S)

    def _hear(self, until: float, onlooker: Onlooker) -> None:
        """Read what comes; what was heard a moment ago is not looked at again."""
        known: Set[bytes] = {self._words}
        while self.found.missing:
            left = until - time.monotonic()
            if left <= 0:
                return
            try:
                data = self._sock.recv(MAX_DATAGRAM)
            except OSError:
                select.select([self._sock], [], [], left)
                continue
            if data not in known:
                if len(known) < _MAX_KNOWN:
                    known.add(data)
                self._read(data, onlooker)

    def _read(self, data: bytes, onlooker: Onlooker) -> None:
        with contextlib.suppress(WireError):
            rank, address = self._dialect.read_announcement(data)
            noticed = self.found.heard(rank, address, time.monotonic())
            if noticed is not None:
                onlooker.noticed(noticed)

    def _speak(self) -> None:
        """Broadcast from the announced address, so through the interface that has it."""
        try:
            source = _PKTINFO.pack(0, socket.inet_aton(self._address.host), bytes(4))
            aside = [(socket.IPPROTO_IP, _IP_PKTINFO, source)]
            self._sock.sendmsg([self._words], aside, 0, (_EVERYBODY, self._port))
            self._failed = None
        except OSError as error:
            self._failed = why(error)

    def _reasons(self, found: Whereabouts) -> Dict[int, str]:
        trouble = self._failed
        if trouble is None and self._address.host.startswith("127."):
            trouble = "only this host can hear that"
        if trouble is None:
            return found.reasons()
        aside = f"this rank broadcasts from {self._address.host}: {trouble}; set RLX_BIND"
        return {rank: f"{reason}; {aside}" for rank, reason in found.reasons().items()}
