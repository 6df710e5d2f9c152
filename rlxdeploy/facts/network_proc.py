"""The network as /proc and /sys tell it, for hosts without `ip`."""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping

from rlxdeploy.facts.link import Link

_UP = 0x1
# /proc/net/route: interface, destination, gateway, flags, three counters, mask, …
_MASK = 8


def sys_link(line: str) -> Link:
    """Read `name mac mtu flags [kind]`."""
    name, mac, mtu, flags, *kind = line.split(" ")
    said = "".join(kind)
    tunnel = said in {"wireguard", "vxlan", "geneve", "ppp"}
    return Link(
        name,
        mac if re.fullmatch(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", mac) else "",
        bool(int(flags, 16) & _UP),
        int(mtu),
        "loopback" if name == "lo" else "tunnel" if tunnel else said.replace("wlan", ""),
    )


def addresses4(
    trie: Iterable[str], routes: Iterable[str], links: Mapping[str, Link]
) -> Iterator[tuple[str, str]]:
    """Match the kernel's own addresses, which name no interface, with the directly linked nets."""
    nets = list(_linked_nets(routes))
    loopback = next((name for name, link in links.items() if link.kind == "loopback"), "")
    for address in dict.fromkeys(_local_addresses(trie)):
        if address.is_loopback:
            yield loopback, f"{address}/8"
            continue
        holding = [(net.prefixlen, name) for name, net in nets if net.prefixlen and address in net]
        if holding:
            prefix, name = max(holding)
            yield name, f"{address}/{prefix}"


def _linked_nets(routes: Iterable[str]) -> Iterator[tuple[str, ipaddress.IPv4Network]]:
    """Read the rows of /proc/net/route that have no gateway: interface and net."""
    for line in routes:
        name, destination, gateway, *_, mask = line.split()[:_MASK]
        if gateway == "00000000":
            prefix = int(mask, 16).bit_count()
            yield name, ipaddress.IPv4Network((_little_endian(destination), prefix))


def _local_addresses(trie: Iterable[str]) -> Iterator[ipaddress.IPv4Address]:
    last = ""
    for line in trie:
        if found := re.search(r"(?:\|--|\+--) ([0-9.]+)", line):
            last = found[1]
        elif "/32 host LOCAL" in line:
            yield ipaddress.IPv4Address(last)


def _little_endian(word: str) -> int:
    return int.from_bytes(bytes.fromhex(word), "little")


def addresses6(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Read /proc/net/if_inet6."""
    for line in lines:
        address, _, prefix, _, _, name = line.split()
        yield name, f"{ipaddress.IPv6Address(int(address, 16))}/{int(prefix, 16)}"


def default_routes(four: Iterable[str], six: Iterable[str]) -> Iterator[str]:
    """Read /proc/net/route and /proc/net/ipv6_route."""
    for line in four:
        name, destination, *_, mask = line.split()[:_MASK]
        if destination == mask == "00000000":
            yield name
    for row in map(str.split, six):
        # The kernel keeps an unreachable default of its own on lo.
        if row[:2] == ["0" * 32, "00"] and row[-1] != "lo":
            yield row[-1]
