"""What a scan tries, and how fast: ranges of numbers, so that no address is listed in memory.

Behind a router only descriptors bound the pace.  On our own links every address that is tried takes
a place in the kernel's neighbour table, and if nobody has it, holds the place for three seconds.  A
full table loses connects in silence and cuts the machine off from everybody else.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_interface,
)

from rlxdeploy.model.survey import Interface, Network

Subnet = IPv4Network | IPv6Network

# The kernel's own default for gc_thresh3.
USUAL_NEIGHBOURS = 1024

_FULLY_USED = 2  # up to this many addresses a subnet reserves none
_NO_NEIGHBOURS = frozenset({"loopback", "tunnel"})


@dataclass(frozen=True, slots=True)
class Sweep:
    """The addresses to try, as ascending ranges of their numbers, apart by how they are reached."""

    version: int
    routed: tuple[range, ...] = ()
    on_link: tuple[range, ...] = ()

    @property
    def total(self) -> int:
        """How many addresses that are."""
        return count(self.routed) + count(self.on_link)

    def text(self, number: int) -> str:
        """Return the address with this number."""
        return str(IPv4Address(number) if self.version == 4 else IPv6Address(number))  # noqa: PLR2004 - IPv4


@dataclass(frozen=True, slots=True)
class Pace:
    """So many addresses on our own links at once, and as many in every second from then on."""

    share: int

    def begun_by(self, elapsed: float) -> int:
        """Return how many may have been begun *elapsed* seconds after the start."""
        return int(self.share * max(1.0, elapsed))

    def seconds(self, count: int) -> float:
        """Return when the last of *count* may begin."""
        return 0.0 if count <= self.share else count / self.share


def pace_for(places: int, taken: int) -> Pace:
    """Return the pace that a neighbour table of *places* bears, *taken* of them by others.

    Those begun within three seconds are in the table together: a third of it each second, less a
    tenth for what the machine itself may want meanwhile.
    """
    return Pace(max(1, (places - taken) * 3 // 10))


def hosts(network: Subnet) -> range:
    """Return the numbers of the addresses that hosts of *network* may have.

    An IPv4 subnet reserves its first and last, IPv6 its first (the routers'); the two of a /31 or
    /127 and the one of a /32 or /128 are all taken.
    """
    first, last = int(network.network_address), int(network.broadcast_address)
    if network.num_addresses <= _FULLY_USED:
        return range(first, last + 1)
    return range(first + 1, last if network.version == 4 else last + 1)  # noqa: PLR2004 - IPv4


def sweep(network: Subnet, here: Network, excluded: Iterable[Subnet] = ()) -> Sweep:
    """Return what is left of *network* without *excluded* and what leads to *here* itself."""
    mine = (*excluded, *own_addresses(here), *broadcasts(here))
    spans = _left((hosts(network),), _bounds(mine, network.version))
    routed = _left(spans, _bounds(own_links(here), network.version))
    on_link = _left(spans, [(part.start, part.stop) for part in routed])
    return Sweep(network.version, routed, on_link)


def own_addresses(here: Network) -> Iterator[Subnet]:
    """Yield what leads to the machine itself: its addresses, and all of its loopback subnets."""
    for one, interface in _interfaces(here):
        yield interface.network if one.kind == "loopback" else _alone(interface)


def broadcasts(here: Network) -> Iterator[Subnet]:
    """Yield the two addresses of each of our own IPv4 subnets that stand for no host."""
    for _, interface in _interfaces(here):
        network = interface.network
        if network.version == 4 and network.num_addresses > _FULLY_USED:  # noqa: PLR2004 - IPv4
            yield IPv4Network(int(network.network_address))
            yield IPv4Network(int(network.broadcast_address))


def own_links(here: Network) -> Iterator[Subnet]:
    """Yield the subnets whose hosts the machine reaches without a router, by asking for each."""
    for one, interface in _interfaces(here):
        if one.up and one.kind not in _NO_NEIGHBOURS:
            yield interface.network


def estimate(sweep: Sweep, pace: Pace, at_once: int, timeout: float, ports: int) -> float:
    """Return the seconds a scan of nothing but silence takes, *at_once* connects in flight."""
    rounds = -(-sweep.total * ports // at_once)
    near = count(sweep.on_link)
    return max(rounds * timeout, pace.seconds(near) + timeout if near else 0.0)


def _interfaces(here: Network) -> Iterator[tuple[Interface, IPv4Interface | IPv6Interface]]:
    for one in here.interfaces:
        for text in one.addresses:
            yield one, ip_interface(text)


def _alone(interface: IPv4Interface | IPv6Interface) -> Subnet:
    return (IPv4Network if interface.version == 4 else IPv6Network)(int(interface))  # noqa: PLR2004 - IPv4


def _bounds(subnets: Iterable[Subnet], version: int) -> list[tuple[int, int]]:
    return [
        (int(one.network_address), int(one.broadcast_address) + 1)
        for one in subnets
        if one.version == version
    ]


def _left(spans: tuple[range, ...], cuts: Iterable[tuple[int, int]]) -> tuple[range, ...]:
    """Return what is left of *spans* outside of all *cuts*, each `(first, after)`."""
    for first, after in cuts:
        parts = (
            part
            for span in spans
            for part in (
                range(span.start, min(span.stop, first)),
                range(max(span.start, after), span.stop),
            )
        )
        spans = tuple(part for part in parts if part)
    return spans


def count(spans: Iterable[range]) -> int:
    """Return how many addresses *spans* hold."""
    return sum(map(len, spans))
