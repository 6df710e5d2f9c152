"""Finding the other ranks, where nobody wrote down where they are."""

from __future__ import annotations

import ipaddress
from typing import List, Optional, Tuple, Union

from rlxdeploy.runtime.address import Address, parse_address
from rlxdeploy.runtime.errors import SettingsError
from rlxdeploy.runtime.link import mdns
from rlxdeploy.runtime.link.broadcast import Broadcast
from rlxdeploy.runtime.link.form import Onlooker
from rlxdeploy.runtime.link.rendezvous import Answerer, ask
from rlxdeploy.runtime.link.udp import Until, own_host
from rlxdeploy.runtime.settings import Settings
from rlxdeploy.runtime.wire.beacon import Dialect

_Service = Union[Broadcast, Answerer, mdns.Advert]


class Discovery:
    """One rank's search; until it is closed it lets the others find this one."""

    def __init__(self, settings: Settings, dialect: Dialect, onlooker: Onlooker) -> None:
        self._settings, self._dialect, self._onlooker = settings, dialect, onlooker
        self._services: List[_Service] = []

    @property
    def own(self) -> Optional[Address]:
        """Where this rank is to listen; None where it does not."""
        return own_address(self._settings)

    def find(self, until: Until) -> Tuple[Address, ...]:
        """Return PEERS: all ranks of a mesh, rank 0 of a star.

        Raises JoinTimeout with who is missing, PortInUse, SettingsError, RefusedError.
        """
        own = self.own
        if own is None:
            return (self._find_root(until),)
        _check_ipv4(own, self._settings.bind)
        if self._settings.star:
            self._show_root(own)
            return (own,)
        return self._find_all(own, until)

    def close(self) -> None:
        """Stop being found."""
        while self._services:
            self._services.pop().close()

    def doubts(self) -> str:
        """Return what was strange about the ranks that were found, for an error; perhaps empty."""
        found = [each.found for each in self._services if isinstance(each, Broadcast)]
        return "".join(each.doubts() for each in found)

    def _find_all(self, own: Address, until: Until) -> Tuple[Address, ...]:
        settings = self._settings
        broadcast = Broadcast(settings.rank, own, settings.disc_port, self._dialect)
        self._services.append(broadcast)
        return broadcast.find_all(settings.world, until, self._onlooker)

    def _find_root(self, until: Until) -> Address:
        settings = self._settings
        self._onlooker.missing((0,))
        if settings.discover_host is not None:
            return ask(settings.discover_host, settings.disc_port, self._dialect, until)
        return mdns.browse(self._dialect, until, settings.bind)

    def _show_root(self, own: Address) -> None:
        settings = self._settings
        self._services.append(Answerer(settings.disc_port, own.port, self._dialect))
        if settings.discover_host is not None:
            return
        if mdns.available():
            self._services.append(mdns.Advert(own, self._dialect))
        else:
            self._onlooker.noticed("zeroconf is not installed: workers need DISCOVER_HOST")


def own_address(settings: Settings) -> Optional[Address]:
    """Return where a rank is to be found that listens, or is to; None for one that does not.

    RLX_BIND or the own PEERS address, else where the default route leaves from: nobody can dial
    the wildcard.
    """
    if not settings.discover:
        address = settings.listen_address
    elif settings.star and settings.rank:
        address = None
    else:
        address = parse_address(settings.bind or own_host(), settings.data_port + settings.rank)
    if address is not None and _any_host(address.host):
        return Address(own_host(), address.port)
    return address


def _any_host(host: str) -> bool:
    """Whether *host* is the wildcard of IPv4, the only one that leads to `own_host`."""
    try:
        return ipaddress.IPv4Address(host).is_unspecified
    except ValueError:
        return False


def _check_ipv4(own: Address, bind: Optional[str]) -> None:
    try:
        ipaddress.IPv4Address(own.host)
    except ValueError:
        raise SettingsError(
            "RLX_BIND", bind, "a numeric IPv4 address, as discovery knows no other"
        ) from None
