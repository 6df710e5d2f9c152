"""From settings to a group: the part that a program's `connect` and the built-in node share."""

from __future__ import annotations

import os
import time
from typing import Callable

from rlxdeploy.runtime.algorithm.moves import Member
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.door import Door
from rlxdeploy.runtime.link.form import Formation, Onlooker, Place
from rlxdeploy.runtime.link.listener import listen
from rlxdeploy.runtime.link.sockets import is_loopback
from rlxdeploy.runtime.link.tcp import Patience, TcpLinks
from rlxdeploy.runtime.settings import Settings


class Bringup:
    """One rank's join: listens from the start, forms the links as often as is needed.

    Raises SettingsError, NotSupported, PortInUse or RefusedError at once.
    """

    def __init__(self, settings: Settings, limits: Limits, onlooker: Onlooker) -> None:
        settings.check()
        settings.check_supported()
        self._settings, self._limits = settings, limits
        self.deadline = time.monotonic() + settings.join_timeout
        address = settings.listen_address
        door = None
        if address is not None:
            listener = listen(address, limits, open_net=settings.security == "none")
            door = Door(listener, limits, settings.peer_timeout)
        place = Place(
            settings.rank, settings.world, settings.star, settings.peers, settings.peer_timeout
        )
        self._formation = Formation(place, door, limits, onlooker)

    def form(self, on_close: Callable[[], None] = lambda: None) -> ProcessGroup:
        """Return a group with all its links; JoinTimeout says who was missing."""
        settings = self._settings
        connections = self._formation.run(self.deadline, settings.join_timeout)
        hub = settings.star and settings.world > 2  # noqa: PLR2004 - two ranks have all their links
        patience = Patience(settings.spin_us / 1e6, self._crowded(), settings.peer_timeout)
        links = TcpLinks(
            Member(settings.rank, settings.world, hub), connections, self._limits, patience
        )
        return ProcessGroup(
            links,
            timeout=settings.timeout,
            deterministic=settings.deterministic,
            on_close=on_close,
        )

    def close(self) -> None:
        """Stop listening; groups already formed stay."""
        self._formation.close()

    def _crowded(self) -> bool:
        """Whether the ranks of this host outnumber its cores, as far as PEERS tell."""
        peers = self._settings.peers
        if not peers:
            return False
        own = peers[0 if self._settings.star else self._settings.rank].host
        if self._settings.star:
            here = self._settings.world if _local(own) else 1
        else:
            here = sum(peer.host == own for peer in peers)
        return here > (os.cpu_count() or 1)


def _local(host: str) -> bool:
    try:
        return is_loopback(host)
    except ValueError:
        return host == "localhost"
