"""Interfaces, their addresses, and where the default routes leave: from `ip`, or from /proc."""

import re
from collections.abc import Iterator, Mapping

from rlxdeploy.facts import network_bsd, network_proc, rows
from rlxdeploy.facts.link import Link
from rlxdeploy.facts.places import tagged
from rlxdeploy.facts.question import Answers, Question
from rlxdeploy.model.survey import Network

NAME = "network"

# busybox's `ip` knows no -batch, by which one process tells all; of all tables it tells the routes
# of both families, of one those of IPv4.  /sys may show another namespace's interfaces, so it comes
# last.
_NETWORK = """\
if shown=$(ip -d -o -batch - <<END
link show
addr show
route show default table all
END
); then
  printf '%s\\n' "$shown"
elif links=$(ip -o link show); then
  {
    printf '#link\\n%s\\n' "$links"
    echo '#addr'; ip -o addr show
    echo '#route'; ip -o -4 route show default; ip -o -6 route show default
  } | awk '/^#/ { tag = substr($0, 2); next } { print tag "|" $0 }'
elif [ -d /sys/class/net ]; then
  for d in /sys/class/net/*; do
    [ -d "$d" ] || continue
    read -r mac <"$d/address"; read -r mtu <"$d/mtu"; read -r flags <"$d/flags"
    kind=$(sed -n 's/^DEVTYPE=//p' "$d/uevent")
    [ -d "$d/bridge" ] && kind=bridge; [ -f "$d/tun_flags" ] && kind=tunnel
    echo "sys|${d##*/} $mac $mtu $flags $kind"
  done
  sed '1d; s/^/route4|/' /proc/net/route
  sed 's/^/local4|/' /proc/net/fib_trie
  sed 's/^/addr6|/' /proc/net/if_inet6
  sed 's/^/route6|/' /proc/net/ipv6_route
else
  ifconfig -a | sed 's/^/ifconfig|/'
  for f in '' -inet6; do
    route -n get $f default | sed -n 's/ *interface: /route|default dev /p'
  done
fi
"""

_BEGINS = {
    "link": re.compile(r"\d+: \S+: <"),
    "addr": re.compile(r"\d+: \S+ +inet6? "),
    # A table of one's own is for some of the traffic only.
    "route": re.compile(r"(?:[a-z]+ )?default (?!.* table (?!main ))"),
}

# What `ip -d` calls an interface that is no plain one.  A port of a bridge says `bridge_slave`
# in the same place and is a plain interface itself.
_TUNNELS = (
    *("tun", "wireguard", "vxlan", "geneve", "gre", "gretap", "ip6gre", "ip6gretap", "erspan"),
    *("ipip", "sit", "ip6tnl", "vti", "vti6", "xfrm", "ppp", "tailscale"),
)
_OTHERS = (
    *("bridge", "veth", "bond", "vlan", "dummy", "macvlan", "macvtap", "ipvlan", "ipvtap"),
    *("team", "vrf", "ifb", "nlmon"),
)
_KINDS = dict.fromkeys(_TUNNELS, "tunnel") | {kind: kind for kind in _OTHERS}
_TUNNEL_LINKS = frozenset({"tunnel", "tunnel6", "gre", "gre6", "sit", "ppp", "none"})


def questions() -> tuple[Question, ...]:
    """Return what to ask about the network."""
    return (Question(NAME, _NETWORK, row=rows.KERNEL, plain=True),)


def parse(answers: Answers) -> Network:
    """Read the answer; raise Unanswered where the host gave none."""
    said: dict[str, list[str]] = {}
    for tag, rest in _tagged(answers.required(NAME)):
        said.setdefault(tag, []).append(rest)
    links = {link.name: link for link in _links(said)}
    for name, address in _addresses(said, links):
        if name in links:
            links[name].addresses.append(address)
    routes = (name for name in _routes(said) if name in links)
    return Network(tuple(link.done() for link in links.values()), tuple(dict.fromkeys(routes)))


def _tagged(text: str) -> Iterator[tuple[str, str]]:
    """Read `tag|text` lines, and those of `ip -batch`, whose begin tells what they are of."""
    for line in text.split("\n"):
        tag = next((tag for tag, begin in _BEGINS.items() if begin.match(line)), "")
        if tag:
            yield tag, line
        else:
            yield from tagged(line)


def _links(said: Mapping[str, list[str]]) -> Iterator[Link]:
    yield from filter(None, map(_ip_link, said.get("link", [])))
    yield from map(network_proc.sys_link, said.get("sys", []))
    yield from network_bsd.links(said.get("ifconfig", []))


def _ip_link(line: str) -> Link | None:
    r"""Read `2: eth0@if3: <FLAGS> mtu 1500 … \    link/ether MAC brd … \    KIND settings`."""
    found = re.match(r"\d+: ([^\s@:]+)(?:@\S+)?: <([^>]*)>.*? mtu (\d+)", line)
    if not found:
        return None
    name, flags, mtu = found.groups()
    address = re.search(r"link/(\S+)(?: ([0-9a-f]{2}(?::[0-9a-f]{2}){5})\b)?", line)
    link_type = address[1] if address else ""
    kind = "loopback" if link_type == "loopback" else _kind(line)
    kind = kind or ("tunnel" if link_type in _TUNNEL_LINKS else "")
    up = {"UP", "LOWER_UP"} <= set(flags.split(","))
    return Link(name, (address and address[2]) or "", up, int(mtu), kind)


def _kind(line: str) -> str:
    """Return the kind that `ip -d` writes as the first word of one of its detail parts."""
    for part in line.split("\\")[1:]:
        words = part.split()
        if words and words[0] in _KINDS:
            return _KINDS[words[0]]
    return ""


def _addresses(
    said: Mapping[str, list[str]], links: Mapping[str, Link]
) -> Iterator[tuple[str, str]]:
    yield from filter(None, map(_ip_address, said.get("addr", [])))
    yield from network_proc.addresses4(said.get("local4", []), said.get("route4", []), links)
    yield from network_proc.addresses6(said.get("addr6", []))
    yield from network_bsd.addresses(said.get("ifconfig", []))


def _ip_address(line: str) -> tuple[str, str] | None:
    """Read one line of `ip -o addr`; an address that will be gone or never came up is left out."""
    found = re.match(r"\d+: (\S+)\s+inet6? (\S+)(?: peer (\S+))?", line)
    if not found or re.search(r"\b(temporary|dadfailed)\b", line):
        return None
    name, address, peer = found.groups()
    alone, _, prefix = address.partition("/")
    prefix = prefix or (peer or "").partition("/")[2] or ("128" if ":" in alone else "32")
    return name.partition("@")[0], f"{alone}/{prefix}"


def _routes(said: Mapping[str, list[str]]) -> Iterator[str]:
    for line in said.get("route", []):
        yield from re.findall(r"\bdev (\S+)", line)
    yield from network_proc.default_routes(said.get("route4", []), said.get("route6", []))
