"""The network as `ifconfig -a` of macOS tells it."""

import re
from collections.abc import Iterable, Iterator

from rlxdeploy.facts.link import Link


def links(lines: Iterable[str]) -> Iterator[Link]:
    """Read each interface, without its addresses."""
    link: Link | None = None
    for line in lines:
        if head := re.match(r"(\S+): flags=[0-9a-f]+<([^>]*)>.* mtu (\d+)", line):
            if link:
                yield link
            name, flags, mtu = head.groups()
            up = {"UP", "RUNNING"} <= set(flags.split(","))
            link = Link(name, "", up, int(mtu), _bsd_kind(name, flags))
        elif link and (mac := re.match(r"\s+ether ([0-9a-f:]{17})", line)):
            link.mac = mac[1]
    if link:
        yield link


def _bsd_kind(name: str, flags: str) -> str:
    if "LOOPBACK" in flags:
        return "loopback"
    kinds = {
        "bridge": "bridge",
        "utun": "tunnel",
        "gif": "tunnel",
        "stf": "tunnel",
        "ipsec": "tunnel",
    }
    kinds |= {"awdl": "tunnel", "llw": "tunnel", "ppp": "tunnel"}
    return next((kind for prefix, kind in kinds.items() if name.startswith(prefix)), "")


def addresses(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Read each address that stays, with its interface."""
    name = ""
    for line in lines:
        if head := re.match(r"(\S+): flags=", line):
            name = head[1]
        elif four := re.match(r"\s+inet (\S+) .*netmask 0x([0-9a-f]{8})", line):
            yield name, f"{four[1]}/{int(four[2], 16).bit_count()}"
        elif (six := re.match(r"\s+inet6 ([^\s%]+)\S* prefixlen (\d+)", line)) and (
            "temporary" not in line
        ):
            yield name, f"{six[1]}/{six[2]}"
