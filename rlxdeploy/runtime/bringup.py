"""From settings to a group: the part that a program's `connect` and the built-in node share."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Callable, Optional, Union

from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.algorithm.moves import Member
from rlxdeploy.runtime.algorithm.native_steps import Shape
from rlxdeploy.runtime.errors import JoinTimeout
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.keyfile import read_key
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.assembly import Assembly
from rlxdeploy.runtime.link.channel import Channel
from rlxdeploy.runtime.link.collectives import Collectives
from rlxdeploy.runtime.link.discovery import Discovery
from rlxdeploy.runtime.link.door import Door
from rlxdeploy.runtime.link.exchange import Exchange
from rlxdeploy.runtime.link.form import Formation, Onlooker, Place
from rlxdeploy.runtime.link.heap import Heap
from rlxdeploy.runtime.link.join import Joining
from rlxdeploy.runtime.link.listener import listen
from rlxdeploy.runtime.link.meeting import Secrets
from rlxdeploy.runtime.link.native import Native
from rlxdeploy.runtime.link.sockets import is_loopback
from rlxdeploy.runtime.link.tcp import Patience, TcpLinks
from rlxdeploy.runtime.link.udp import Until
from rlxdeploy.runtime.settings import Settings
from rlxdeploy.runtime.wire.beacon import OfJob, Plain
from rlxdeploy.runtime.wire.identity import Identity

# Differs between machines and between their boots; containers of one machine share it.
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Bringup:
    """One rank's join: listens from the start, forms the links as often as is needed.

    Raises SettingsError, NotSupported, PortInUse or RefusedError at once.
    """

    def __init__(self, settings: Settings, limits: Limits, onlooker: Onlooker) -> None:
        settings.check()
        self.deadline = time.monotonic() + settings.join_timeout
        self._limits = limits
        self._discovery: Optional[Discovery] = None
        secrets = _secrets(settings) if settings.wire == "native" else None
        if settings.discover and settings.world > 1:
            dialect = OfJob(settings.job, settings.world, secrets.key) if secrets else Plain()
            self._discovery = Discovery(settings, dialect, onlooker)
            settings = self._discovered(settings, self._discovery)
        self._settings = settings
        try:
            self._formation = self._prepare(secrets, onlooker)
        except BaseException:
            self._stop_discovery()
            raise

    def _prepare(self, secrets: Optional[Secrets], onlooker: Onlooker) -> Union[Formation, Joining]:
        settings, limits = self._settings, self._limits
        place = Place(
            settings.rank, settings.world, settings.star, settings.peers, settings.peer_timeout
        )
        listener = self._listen(settings.listen_address)
        if secrets is not None:
            assembly = Assembly(place, listener, secrets, limits, onlooker)
            return Joining(place, assembly, limits, onlooker)
        door = Door(listener, limits, settings.peer_timeout, onlooker.noticed) if listener else None
        return Formation(place, door, limits, onlooker)

    def form(self, on_close: Callable[[], None] = lambda: None) -> ProcessGroup:
        """Return a group with all its links; JoinTimeout says who was missing."""
        settings = self._settings
        try:
            wire = self._form()
        except JoinTimeout as error:
            raise self._with_doubts(error) from None
        return ProcessGroup(
            wire,
            timeout=settings.timeout,
            deterministic=settings.deterministic,
            on_close=on_close,
        )

    def close(self) -> None:
        """Stop listening and being found; groups already formed stay."""
        self._formation.close()
        self._stop_discovery()

    @property
    def _hub(self) -> bool:
        """Whether some ranks have no link of their own: two ranks have all their links."""
        return self._settings.star and self._settings.world > 2  # noqa: PLR2004 - a pair

    def _discovered(self, settings: Settings, discovery: Discovery) -> Settings:
        """Return *settings* with PEERS; a port that is taken is known before the search."""
        try:
            self._settings = settings
            probe = self._listen(discovery.own)
            if probe is not None:
                probe.close()
            until = Until(self.deadline, settings.join_timeout)
            return replace(settings, peers=discovery.find(until))
        except BaseException:
            self._stop_discovery()
            raise

    def _stop_discovery(self) -> None:
        if self._discovery is not None:
            self._discovery.close()

    def _listen(self, address: Optional[Address]) -> Optional[socket.socket]:
        settings = self._settings
        if address is None:
            return None
        proven = settings.wire == "native" and settings.uses_key
        return listen(address, self._limits, open_net=proven or settings.security == "none")

    def _form(self) -> Collectives:
        formation = self._formation
        if isinstance(formation, Joining):
            return self._native(formation)
        return self._exchange(formation)

    def _with_doubts(self, error: JoinTimeout) -> JoinTimeout:
        """Add what discovery found strange to *error*."""
        doubts = self._discovery.doubts() if self._discovery else ""
        missing = {rank: f"{reason}{doubts}" for rank, reason in error.missing.items()}
        return JoinTimeout(self._settings.join_timeout, missing, error.strangers, error.turned_away)

    def _exchange(self, formation: Formation) -> Collectives:
        settings = self._settings
        connections = formation.run(self.deadline, settings.join_timeout)
        patience = Patience(settings.spin_us / 1e6, self._crowded(), settings.peer_timeout)
        member = Member(settings.rank, settings.world, self._hub)
        heap = Heap(settings.heap_bytes)
        return Exchange(TcpLinks(member, connections, self._limits, patience, heap))

    def _native(self, joining: Joining) -> Collectives:
        settings = self._settings
        formed = joining.run(self.deadline, settings.join_timeout)
        shape = Shape(settings.rank, settings.world, formed.crowded, self._hub)
        channels = {
            rank: Channel(rank, address, sock)
            for rank, (sock, address) in sorted(formed.connections.items())
        }
        patience = Patience(settings.spin_us / 1e6, formed.crowded, settings.peer_timeout)
        return Native(shape, channels, self._limits, patience, Heap(settings.heap_bytes))

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


def _secrets(settings: Settings) -> Secrets:
    """Return who this rank is on the native wire, and its key; SettingsError without one."""
    own = Identity(
        job=settings.job,
        plan=settings.plan,
        world=settings.world,
        rank=settings.rank,
        incarnation="",
        security="psk" if settings.uses_key else "none",
        host=_machine(),
        cores=_cores(),
    )
    return Secrets(own, read_key(Path(str(settings.key_file))) if settings.uses_key else b"")


def _machine() -> str:
    try:
        name = _BOOT.read_text(encoding="ascii")
    except OSError:
        name = socket.gethostname()
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _local(host: str) -> bool:
    try:
        return is_loopback(host)
    except ValueError:
        return host == "localhost"
