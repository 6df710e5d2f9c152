"""Hosts that announce themselves by multicast DNS: where to ask, and which answers to believe.

An answer names every address its host knows of, those of its containers and overlays too.  Only an
address in a subnet of the interface on which it came in can be on the link that carried it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface

from rlxdeploy.model.survey import Interface, Network

SSH = "_ssh._tcp.local."
# Upstream's coordinator, any host that takes SSH, and our own nodes.
SERVICES = ("_rlx-coord._udp.local.", SSH, "_rlx-node._tcp.local.")

# Made for containers and virtual machines: nobody else's machine answers there.
_MADE = ("veth", "docker", "br-", "virbr", "cni")

_Instance = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Announced:
    """One instance of a service as its host announces it; *port* is the service's own.

    *interface* is the one of ours on which it was heard.  Without addresses it did not tell them
    in time.
    """

    service: str
    instance: str
    addresses: tuple[str, ...]
    port: int
    interface: str

    def __str__(self) -> str:
        return f"{self.instance} ({self.service.removesuffix('.local.')})"


@dataclass(frozen=True, slots=True)
class Heard:
    """*hosts* maps each address to whom it was announced by; *dropped* are answers without one."""

    hosts: dict[str, Announced]
    dropped: tuple[Announced, ...]


def askable(here: Network, only: str | None = None) -> tuple[Interface, ...]:
    """Return the interfaces to ask on: *only* that one, or all with a link to other machines."""
    return tuple(
        one
        for one in here.interfaces
        if one.up
        and one.kind not in {"loopback", "tunnel"}
        and any(_subnets(one))
        and (one.name == only if only else not one.name.startswith(_MADE))
    )


def sort_out(answers: Iterable[Announced], asked: Sequence[Interface]) -> Heard:
    """Return the hosts to believe in, each by its first address on the link that it answered on.

    The machine itself is left out; it may share addresses of other links, such as docker0's, with
    anybody.  An instance is dropped if none of its answers is to be believed.
    """
    links = {one.name: tuple(_subnets(one)) for one in asked}
    own = {ip_interface(text).ip for one in asked for text in one.addresses}
    hosts: dict[str, Announced] = {}
    known: set[_Instance] = set()
    strange: dict[_Instance, Announced] = {}
    # Of a host's services SSH counts first: its port is the one to dial.
    for answer in sorted(answers, key=lambda one: (one.service != SSH, one.instance, one.service)):
        which = answer.service, answer.instance
        near = [
            text
            for text in sorted(map(ip_address, answer.addresses), key=lambda ip: (ip.version, ip))
            if any(text in link.network for link in links.get(answer.interface, ()))
        ]
        if not near:
            strange.setdefault(which, answer)
            continue
        known.add(which)
        if own.isdisjoint(near):
            hosts.setdefault(str(near[0]), answer)
    return Heard(hosts, tuple(one for which, one in strange.items() if which not in known))


def named(asked: Iterable[Interface]) -> str:
    """Return the interfaces as a message names them, each with its subnets' addresses."""
    return ", ".join(f"{one.name} ({', '.join(map(str, _subnets(one)))})" for one in asked)


def _subnets(interface: Interface) -> Iterator[IPv4Interface | IPv6Interface]:
    """Yield the addresses of *interface* that say where others are; link-local ones do not."""
    for text in interface.addresses:
        if not (found := ip_interface(text)).is_link_local:
            yield found
