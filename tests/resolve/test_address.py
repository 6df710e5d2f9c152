"""Peers are dialled where all of them can dial, and the plan says why there."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.model.survey import Interface, Network
from rlxdeploy.resolve.address import Ask, Rule, Settled, peer_addresses
from tests.resolve.lab import interface, network

DOCKER = interface("docker0", "172.17.0.1/16", kind="bridge")
NAT = interface("eth0", "10.0.2.15/24")


def vm(number: int) -> Network:
    """Return a virtual machine as it comes: docker, the same NAT address, and a host network."""
    lan = interface("eth1", f"192.168.56.{number}/24", "fe80::1/64")
    return network(NAT, lan, DOCKER, interface("br-1f", "172.18.0.1/16"))


VMS: dict[str, Network | None] = {"a": vm(4), "b": vm(5)}
TWO_LANS: dict[str, Network | None] = {
    name: network(
        interface("eth0", f"10.0.0.{number}/24", f"2001:db8::{number}/64"),
        interface("ib0", f"10.9.0.{number}/24"),
    )
    for number, name in enumerate("ab", start=1)
}
NO_ROUTE: dict[str, Network | None] = {
    name: Network(machine.interfaces) for name, machine in TWO_LANS.items() if machine
}
IPV6: dict[str, Network | None] = {
    name: network(interface("eth0", f"fd00::{number}/64", f"fe80::{number}/64"))
    for number, name in enumerate("ab", start=5)
}
APART: dict[str, Network | None] = {
    "a": network(interface("eth0", "10.1.0.1/24")),
    "b": network(interface("eth0", "10.2.0.1/24"), interface("vip", "10.1.0.9/32")),
}


def pair(*faces: str, kind: str = "", default: str = "eth0") -> dict[str, Network | None]:
    """Return two machines with `name=address/prefix` interfaces, `#` standing for the number."""
    return {
        name: network(
            *(
                interface(
                    face.partition("=")[0],
                    face.partition("=")[2].replace("#", str(number)),
                    kind=kind,
                )
                for face in faces
            ),
            default=default,
        )
        for number, name in enumerate("ab", start=1)
    }


BOTH = (Ask("a"), Ask("b"))
LAN = "eth0=10.0.0.#/24"

IN_LAN = "on eth0 of a, in 10.0.0.0/24, the one subnet that all 2 machines share"
ELSEWHERE = "; no interface of a has it: NAT, VIP or port forward"
PASSED = (
    "; passed over 10.0.2.15 (eth0): stands on two hosts,"
    " 172.17.0.1 (docker0): stands on two hosts, 172.18.0.1 (br-1f): stands on two hosts"
)

CHOSEN = {
    "the subnet that only lets all in": (
        VMS,
        BOTH,
        Rule(),
        ["192.168.56.4", "192.168.56.5"],
        f"on eth1 of a, in 192.168.56.0/24, the one subnet that all 2 machines share{PASSED}",
    ),
    "several subnets: the default route decides": (
        TWO_LANS,
        BOTH,
        Rule(),
        ["10.0.0.1", "10.0.0.2"],
        "on eth0 of a, in 10.0.0.0/24, of 3 shared subnets the IPv4 one of the default routes",
    ),
    "an interface named": (
        TWO_LANS,
        BOTH,
        Rule(interface="ib0"),
        ["10.9.0.1", "10.9.0.2"],
        "[network] interface ib0: on ib0",
    ),
    "a subnet named": (
        TWO_LANS,
        BOTH,
        Rule(cidr=ip_network("2001:db8::/64")),
        ["2001:db8::1", "2001:db8::2"],
        "[network] cidr 2001:db8::/64: on eth0",
    ),
    "IPv6 where there is no other": (
        IPV6,
        BOTH,
        Rule(),
        ["fd00::5", "fd00::6"],
        "on eth0 of a, in fd00::/64, the one subnet that all 2 machines share",
    ),
    "one address written says which subnet is meant": (
        NO_ROUTE,
        (Ask("a", "10.9.0.1"), Ask("b")),
        Rule(),
        ["10.9.0.1", "10.9.0.2"],
        "addr as written",
    ),
    "a written address that nobody has": (
        VMS,
        (Ask("a", "203.0.113.7"), Ask("b", "192.168.56.5")),
        Rule(),
        ["203.0.113.7", "192.168.56.5"],
        f"addr as written{ELSEWHERE}",
    ),
    "a name, at the address that the host has": (
        VMS,
        (Ask("a", "a.lan", ("10.0.0.1", "192.168.56.4")), Ask("b", "192.168.56.5")),
        Rule(),
        ["192.168.56.4", "192.168.56.5"],
        "addr 'a.lan', resolved by the controller",
    ),
    "a mapped address": (
        VMS,
        (Ask("a", "::ffff:192.168.56.4"), Ask("b")),
        Rule(),
        ["192.168.56.4", "192.168.56.5"],
        "addr as written",
    ),
    "one machine": (
        {"a": vm(4)},
        (Ask("a"), Ask("a")),
        Rule(),
        ["127.0.0.1", "127.0.0.1"],
        "all ranks are on one machine",
    ),
    "docker0 beside the lan": (
        pair(LAN, "docker0=172.17.0.#/16"),
        BOTH,
        Rule(),
        ["10.0.0.1", "10.0.0.2"],
        f"{IN_LAN}; passed over 172.17.0.1 (docker0): a bridge or made for containers",
    ),
    "a bridge by its kind alone": (
        {
            name: network(
                interface("eth0", f"10.0.0.{number}/24"),
                interface("lxdbr0", f"10.5.0.{number}/24", kind="bridge"),
            )
            for number, name in enumerate("ab", start=1)
        },
        BOTH,
        Rule(),
        ["10.0.0.1", "10.0.0.2"],
        f"{IN_LAN}; passed over 10.5.0.1 (lxdbr0): a bridge or made for containers",
    ),
    "a bridge that is meant": (
        pair("br-lan=10.0.0.#/24"),
        BOTH,
        Rule(interface="br-lan"),
        ["10.0.0.1", "10.0.0.2"],
        "[network] interface br-lan: on br-lan",
    ),
    "a VPN beside the lan": (
        pair(LAN, "wg0=10.8.0.#/24"),
        BOTH,
        Rule(),
        ["10.0.0.1", "10.0.0.2"],
        "on eth0 of a, in 10.0.0.0/24, of 2 shared subnets the one of the default routes",
    ),
    "a VPN as the only net in common": (
        {
            "a": network(interface("eth0", "192.168.1.5/24"), interface("tun0", "10.8.0.1/24")),
            "b": network(interface("eth0", "192.168.7.5/24"), interface("tun0", "10.8.0.2/24")),
        },
        BOTH,
        Rule(),
        ["10.8.0.1", "10.8.0.2"],
        "on tun0 of a, in 10.8.0.0/24, the one subnet that all 2 machines share",
    ),
    "an overlay of single addresses, named": (
        pair("eth0=192.168.#.5/24", "tailscale0=100.64.0.#/32"),
        BOTH,
        Rule(cidr=ip_network("100.64.0.0/10")),
        ["100.64.0.1", "100.64.0.2"],
        "[network] cidr 100.64.0.0/10: on tailscale0",
    ),
    "a VIP on one host": (
        {
            "a": network(interface("eth0", "10.0.0.1/24", "10.0.0.100/32")),
            "b": network(interface("eth0", "10.0.0.2/24")),
        },
        BOTH,
        Rule(),
        ["10.0.0.1", "10.0.0.2"],
        f"{IN_LAN}; passed over 10.0.0.100 (eth0): alone in its subnet",
    ),
    "a VIP on both hosts": (
        {
            "a": network(interface("eth0", "10.0.0.100/24", "10.0.0.101/24")),
            "b": network(interface("eth0", "10.0.0.100/24", "10.0.0.102/24")),
        },
        BOTH,
        Rule(),
        ["10.0.0.101", "10.0.0.102"],
        f"{IN_LAN}; passed over 10.0.0.100 (eth0): stands on two hosts",
    ),
    "link-local beside the lan": (
        pair("eth0=10.0.0.#/24", "eth1=169.254.0.#/16", "eth2=fe80::#/64"),
        BOTH,
        Rule(),
        ["10.0.0.1", "10.0.0.2"],
        IN_LAN,
    ),
    "a direct cable with link-local IPv4, named": (
        pair("eth1=169.254.0.#/16"),
        BOTH,
        Rule(interface="eth1"),
        ["169.254.0.1", "169.254.0.2"],
        "[network] interface eth1: on eth1",
    ),
    "a name at 127.0.1.1 and at an address": (
        VMS,
        (Ask("a", "a.lan", ("127.0.1.1", "192.168.56.4")), Ask("b")),
        Rule(),
        ["192.168.56.4", "192.168.56.5"],
        "addr 'a.lan', resolved by the controller",
    ),
    "a name at loopback and behind a NAT": (
        VMS,
        (Ask("a", "a.lan", ("127.0.0.1", "203.0.113.7")), Ask("b", "192.168.56.5")),
        Rule(),
        ["203.0.113.7", "192.168.56.5"],
        f"addr 'a.lan', resolved by the controller{ELSEWHERE}",
    ),
    "a name that the resolver turns round": (
        VMS,
        (Ask("a", "a.lan", ("203.0.113.9", "203.0.113.7")), Ask("b", "192.168.56.5")),
        Rule(),
        ["203.0.113.7", "192.168.56.5"],
        f"addr 'a.lan', resolved by the controller{ELSEWHERE}",
    ),
    "a machine that nobody may ask": (
        {"a": vm(4), "b": vm(5), "out": None},
        (Ask("a"), Ask("b"), Ask("out", "192.168.56.9")),
        Rule(),
        ["192.168.56.4", "192.168.56.5", "192.168.56.9"],
        f"on eth1 of a, in 192.168.56.0/24, the one subnet that all 3 machines share{PASSED}",
    ),
}


@pytest.mark.parametrize(
    ("machines", "asks", "rule", "addresses", "why"), CHOSEN.values(), ids=CHOSEN.keys()
)
def test_the_rule_chooses_and_explains(
    machines: dict[str, Network | None],
    asks: tuple[Ask, ...],
    rule: Rule,
    addresses: list[str],
    why: str,
) -> None:
    """The address of every node and the reason of the first are these."""
    settled = peer_addresses(asks, machines, rule)

    assert [one.address for one in settled] == addresses
    assert settled[0].why == why


REFUSED = {
    "several subnets and nothing to decide by": (
        NO_ROUTE,
        BOTH,
        Rule(interface=None),
        "all machines share several subnets: 10.0.0.0/24, 10.9.0.0/24, 2001:db8::/64",
        "write addr in [[node]], or cidr or interface in [network]",
    ),
    "no subnet in common": (
        APART,
        BOTH,
        Rule(),
        "no subnet is shared by all machines: a has 10.1.0.1 (eth0); b has 10.2.0.1 (eth0)",
        "write addr in [[node]], or cidr or interface in [network]",
    ),
    "an interface that is not there": (
        APART,
        BOTH,
        Rule(interface="eth7"),
        (
            "no address of a fits [network] interface eth7; it has 10.1.0.1 (eth0), 127.0.0.1 (lo),"
            " ::1 (lo)"
        ),
        "write addr in [[node]], or cidr or interface in [network]",
    ),
    "the same NAT address by rule": (
        VMS,
        BOTH,
        Rule(interface="eth0"),
        (
            "no address of a fits [network] interface eth0; it has 10.0.2.15 (eth0),"
            " 127.0.0.1 (lo), 172.17.0.1 (docker0), 172.18.0.1 (br-1f), 192.168.56.4 (eth1),"
            " ::1 (lo), fe80::1 (eth1)"
        ),
        "write addr in [[node]], or cidr or interface in [network]",
    ),
    "link-local alone": (
        pair("eth0=169.254.0.#/16", "eth1=fe80::#/64"),
        BOTH,
        Rule(),
        "no subnet is shared by all machines: a has none to dial; b has none to dial",
        "write addr in [[node]], or cidr or interface in [network]",
    ),
    "IPv6 link-local by rule": (
        pair("eth0=fe80::#/64"),
        BOTH,
        Rule(interface="eth0"),
        (
            "no address of a fits [network] interface eth0; it has 127.0.0.1 (lo), ::1 (lo),"
            " fe80::1 (eth0)"
        ),
        "write addr in [[node]], or cidr or interface in [network]",
    ),
    "an overlay of single addresses alone": (
        pair("tailscale0=100.64.0.#/32"),
        BOTH,
        Rule(),
        "no subnet is shared by all machines: a has none to dial; b has none to dial",
        "write addr in [[node]], or cidr or interface in [network]",
    ),
    "127.0.0.1 as written": (
        VMS,
        (Ask("a", "127.0.0.1"), Ask("b")),
        Rule(),
        "no other machine can dial 127.0.0.1",
        "write 192.168.56.4",
    ),
    "a name that means loopback": (
        VMS,
        (Ask("a", "a.lan", ("127.0.1.1",)), Ask("b")),
        Rule(),
        "no other machine can dial 'a.lan', which is 127.0.1.1",
        "write 192.168.56.4",
    ),
    "a zone": (
        IPV6,
        (Ask("a", "fe80::5%eth0"), Ask("b")),
        Rule(),
        "no other machine can dial fe80::5%eth0",
        "write fd00::5",
    ),
    "nothing written where nobody may ask": (
        {"a": vm(4), "out": None},
        (Ask("out"), Ask("a")),
        Rule(),
        "it is not asked for its addresses",
        "write addr",
    ),
}


@pytest.mark.parametrize(
    ("machines", "asks", "rule", "problem", "remedy"), REFUSED.values(), ids=REFUSED.keys()
)
def test_what_not_all_can_dial_is_a_problem_with_a_remedy(
    machines: dict[str, Network | None],
    asks: tuple[Ask, ...],
    rule: Rule,
    problem: str,
    remedy: str,
) -> None:
    """The first node has no address, and the problem says what was there instead."""
    assert peer_addresses(asks, machines, rule)[0] == Settled(problem=problem, remedy=remedy)


@st.composite
def fleets(draw: st.DrawFn) -> dict[str, Network | None]:
    """Draw machines on some of a few subnets, with addresses that may coincide."""
    fleet: dict[str, Network | None] = {}
    for name in "abcd"[: draw(st.integers(2, 4))]:
        found: list[Interface] = []
        for number, base in enumerate(("10.0.0", "10.1.0", "169.254.0", "172.17.0")):
            if draw(st.booleans()):
                host = draw(st.integers(1, 5))
                own = "docker0" if base.startswith("172") else f"eth{number}"
                found.append(interface(own, f"{base}.{host}/24"))
        fleet[name] = network(*draw(st.permutations(found)), default="eth0")
    return fleet


@given(fleets())
def test_a_choice_can_be_dialled_by_all_and_depends_on_no_order(
    fleet: dict[str, Network | None],
) -> None:
    """Each address is the machine's own and in one subnet; no order of the facts changes it."""
    asks = [Ask(name) for name in fleet]
    settled = peer_addresses(asks, fleet, Rule())
    turned: dict[str, Network | None] = {
        name: Network(machine.interfaces[::-1], machine.default_routes)
        for name, machine in reversed(fleet.items())
        if machine
    }

    again = peer_addresses(asks, turned, Rule())

    assert [one.address for one in again] == [one.address for one in settled]
    for ask, one in zip(asks, settled, strict=True):
        machine = fleet[ask.machine]
        assert machine is not None
        own = [text for face in machine.interfaces for text in face.addresses]
        assert one.problem or f"{one.address}/24" in own
    found = [ip_address(one.address) for one in settled if not one.problem]
    assert len(found) in (0, len(asks))
    assert len(set(found)) == len(found)
    assert not any(one.is_loopback or one.is_link_local for one in found)
    assert len({str(one).rsplit(".", 1)[0] for one in found}) <= 1
