"""The addresses of machines, and which of them other machines could dial."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_interface,
)

from rlxdeploy.model.survey import Network
from rlxdeploy.resolve.machines import is_made

Address = IPv4Address | IPv6Address
Subnet = IPv4Network | IPv6Network


class Against(StrEnum):
    """Why an address is not taken unasked."""

    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    MADE = "a bridge or made for containers"
    TWICE = "stands on two hosts"
    ALONE = "alone in its subnet"

    def forbids(self, address: Address) -> bool:
        """Tell whether not even a rule of the person's makes *address* one to dial from afar."""
        match self:
            case Against.LOOPBACK | Against.TWICE:
                return True
            case Against.LINK_LOCAL:
                return address.version != 4  # noqa: PLR2004 - without its zone IPv6 means nothing
            case Against.MADE | Against.ALONE:
                return False


@dataclass(frozen=True, slots=True)
class Candidate:
    """One address of a machine; *routed*: a default route leaves by its interface."""

    address: Address
    subnet: Subnet
    interface: str
    routed: bool
    against: Against | None = None

    def __str__(self) -> str:
        return f"{self.address} ({self.interface})"

    @property
    def order(self) -> tuple[int, int, str]:
        """IPv4 before IPv6, low before high: the same choice on every run."""
        return self.address.version, int(self.address), self.interface


def plain_address(text: str) -> Address:
    """Return a numeric address, IPv4-mapped IPv6 made IPv4; raise ValueError for a name."""
    address = ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address


def candidates(networks: Mapping[str, Network]) -> dict[str, tuple[Candidate, ...]]:
    """Return all addresses of each machine in *networks*, in `order`."""
    every = {name: tuple(_addresses(network)) for name, network in networks.items()}
    twice = _on_two(every)
    return {
        name: tuple(sorted((_judged(one, twice) for one in found), key=lambda one: one.order))
        for name, found in every.items()
    }


def _addresses(network: Network) -> Iterator[Candidate]:
    for interface in network.interfaces:
        for text in interface.addresses if interface.up else ():
            parsed = ip_interface(text)
            yield Candidate(
                address=parsed.ip,
                subnet=parsed.network,
                interface=interface.name,
                routed=interface.name in network.default_routes,
                against=Against.MADE if is_made(interface) else None,
            )


def _on_two(every: Mapping[str, tuple[Candidate, ...]]) -> frozenset[Address]:
    holders: dict[Address, set[str]] = {}
    for name, found in every.items():
        for candidate in found:
            holders.setdefault(candidate.address, set()).add(name)
    return frozenset(address for address, names in holders.items() if len(names) > 1)


def _judged(candidate: Candidate, twice: frozenset[Address]) -> Candidate:
    address, against = candidate.address, candidate.against
    if address.is_loopback:
        against = Against.LOOPBACK
    elif address in twice and not address.is_link_local:
        against = Against.TWICE
    elif address.is_link_local:
        against = Against.LINK_LOCAL
    elif against is None and candidate.subnet.num_addresses == 1:
        against = Against.ALONE
    return replace(candidate, against=against)
