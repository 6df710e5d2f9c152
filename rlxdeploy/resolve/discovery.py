"""From the hosts that were found to nodes, as a careful person would have written them.

Hand-written nodes stand first and stay as they are.  Found hosts follow in the order in which they
were found, except those that are excluded, are a written node already, or do not let us in; each of
these is told, and none is an error.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address, ip_network

from rlxdeploy.errors import CompileError, Finding, Severity
from rlxdeploy.model.addresses import HostPort, parse_address, parse_host
from rlxdeploy.model.cidr import parse_cidr
from rlxdeploy.model.found import Found
from rlxdeploy.model.inventory import Node
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.locate import KeyPath, Position
from rlxdeploy.model.survey import HostFacts, Survey
from rlxdeploy.model.targets import Targets
from rlxdeploy.resolve.candidates import Subnet
from rlxdeploy.resolve.devices import CPU
from rlxdeploy.resolve.machines import in_file_order, is_made, merged

# Keys of `[discover]` that a found node has as its own.
_SHARED = ("ckpt_dir", "device", "precision")


@dataclass(frozen=True, slots=True)
class Excluded:
    """What is never to be taken: subnets (an address is one of its own), and names of hosts."""

    subnets: tuple[Subnet, ...] = ()
    names: frozenset[str] = frozenset()

    def has(self, address: str) -> bool:
        """Tell whether the numeric *address* is meant."""
        return any(ip_address(address) in subnet for subnet in self.subnets)


@dataclass(slots=True)
class Sifted:
    """The found hosts worth a survey, and what is said of the others."""

    found: list[Found] = field(default_factory=list)
    notices: list[Finding] = field(default_factory=list)


def excluded(loaded: Loaded, names: Mapping[str, tuple[str, ...]]) -> Excluded:
    """Return what `exclude` means; *names* are its host names with their addresses."""
    texts = loaded.inventory.discover.exclude
    subnets = [parse_cidr(text).network for text in texts if "/" in text]
    hosts = {parse_host(text) for text in texts if "/" not in text}
    known = [address for name in hosts for address in (name, *names.get(name, ()))]
    alone = [ip_network(address) for address in known if _is_address(address)]
    return Excluded((*subnets, *alone), frozenset(hosts))


def names_excluded(loaded: Loaded) -> tuple[str, ...]:
    """Return the host names in `exclude`, whose addresses `excluded` wants to know."""
    texts = loaded.inventory.discover.exclude
    return tuple(text for text in texts if "/" not in text and not _is_address(text))


def sifted(loaded: Loaded, found: Iterable[Found], without: Excluded) -> Sifted:
    """Return the hosts to survey, each once and `max_hosts` at most."""
    result, seen = Sifted(), _written(loaded)
    most = loaded.inventory.discover.max_hosts
    over = 0
    for one in found:
        names = {bare_host(one.ssh), one.address, one.said.lower()} - {""}
        own = {text for text in (one.ssh, bare_host(one.ssh), one.address) if text}
        first = next((seen[text] for text in sorted(own) if text in seen), None)
        if names & without.names or (one.address and without.has(one.address)):
            result.notices.append(_told(loaded, one, "found, and excluded"))
        elif first is not None:
            result.notices.append(_told(loaded, one, f"found again: it is {first} already"))
        elif len(result.found) == most:
            over += 1
        else:
            result.found.append(one)
            seen |= dict.fromkeys(own, f"found by {one.by}")
    if over:
        what = f"{over} found hosts more are not surveyed"
        finding = loaded.finding(("discover", "max_hosts"), what, "narrow the search, or raise it")
        result.notices.append(replace(finding, severity=Severity.WARNING))
    return result


def with_nodes(loaded: Loaded, found: Iterable[Found]) -> Loaded:
    """Return the inventory with a node for each of *found*, after the written ones.

    Raises CompileError where an alias is to be a peer address and cannot be one.
    """
    nodes, places, by_index = [*loaded.inventory.node], dict(loaded.places), {}
    for one in found:
        by_index[len(nodes)] = one
        places |= _places(loaded, one, len(nodes))
        nodes.append(_node(loaded, one))
    inventory = loaded.inventory.model_copy(update={"node": tuple(nodes)})
    return replace(loaded, inventory=inventory, places=places, found=by_index)


def settled(loaded: Loaded, survey: Survey, without: Excluded) -> Loaded:
    """Return the inventory with a node for each found host that is to be one.

    What is said of the search, and of each host that is not taken, is among its notices.
    """
    whole = with_nodes(loaded, survey.found)
    same = merged(in_file_order(survey, whole))
    taken, notices = [], []
    for one in survey.found:
        if not loaded.inventory.discover.probe:
            taken.append(one)
        elif (facts := survey.hosts.get(one.ssh)) is None:
            why = survey.failed.get(one.ssh, "not surveyed")
            told = _told(loaded, one, f"found, not taken: {why}")
            notices.append(replace(told, severity=Severity.WARNING))
        elif reason := _against(facts, without):
            notices.append(_told(loaded, one, f"found, and excluded: {reason}"))
        elif one.ssh not in same:
            # Of a machine under two names, both are told where machines are merged.
            taken.append(one)
    grown = with_nodes(loaded, taken)
    return replace(grown, notices=(*loaded.notices, *survey.notices, *notices))


def gently(targets: Targets, strangers: Collection[str]) -> Targets:
    """Return *targets* without any attempt at sudo on *strangers*: they are in no plan yet."""
    return replace(
        targets,
        targets=tuple(
            replace(one, enquiry=replace(one.enquiry, sudo=False))
            if one.host.name in strangers
            else one
            for one in targets.targets
        ),
    )


def asked_again(targets: Targets, survey: Survey, strangers: Collection[str]) -> Targets:
    """Return those of *targets* that were asked gently, will be nodes, and could use sudo."""
    again = (
        one
        for one in targets.targets
        if one.host.name in strangers
        and one.enquiry.sudo
        and (facts := survey.hosts.get(one.host.name)) is not None
        and facts.platform.uid != 0
    )
    return replace(targets, targets=tuple(again))


def bare_host(alias: str) -> str:
    """Return the host of `host`, `user@host` or `ssh://user@host:port`, in lower case."""
    host = alias.removeprefix("ssh://").rstrip("/").rpartition("@")[2].lower()
    if not alias.startswith("ssh://"):
        return host
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _written(loaded: Loaded) -> dict[str, str]:
    """Map every alias and address that a written node names to where that node stands."""
    known: dict[str, str] = {}
    for index, node in enumerate(loaded.inventory.node):
        place = f"the node at {loaded.place_of(('node', index))}"
        addr = parse_address(node.addr).host if node.addr else None
        aliases = (node.ssh, bare_host(node.ssh)) if node.ssh else ()
        for text in (addr, *aliases):
            if text is not None:
                known.setdefault(text, place)
    return known


def _node(loaded: Loaded, one: Found) -> Node:
    discover = loaded.inventory.discover
    shared = {key: getattr(discover, key) for key in _SHARED}
    if discover.probe:
        return Node(ssh=one.ssh, **shared)
    try:
        addr = HostPort(parse_host(one.address or bare_host(one.ssh)), discover.port)
    except ValueError as error:
        raise CompileError([loaded.finding(("discover", one.by), str(error))]) from None
    shared["device"] = discover.device or CPU
    return Node(addr=str(addr), ssh=one.ssh, managed=False, **shared)


def _places(loaded: Loaded, one: Found, index: int) -> Iterator[tuple[KeyPath, Position]]:
    """Yield where the keys of a found node stand: where `[discover]` says what they hold."""
    place, probe = loaded.places.get(("discover", one.by)), loaded.inventory.discover.probe
    if place is not None:
        yield from ((path, place) for path in (("node", index), ("node", index, "ssh")))
    named = dict.fromkeys(_SHARED, "") | ({} if probe else {"port": "addr", "probe": "managed"})
    for key, own in named.items():
        if position := loaded.places.get(("discover", key)):
            yield ("node", index, own or key), position


def _against(facts: HostFacts, without: Excluded) -> str:
    """Return why a surveyed host is excluded after all, "" where it is not."""
    if facts.platform.hostname.lower() in without.names:
        return f"it is called {facts.platform.hostname}"
    for interface in facts.network.interfaces:
        for text in () if is_made(interface) else interface.addresses:
            if without.has(text.partition("/")[0]):
                return f"it has the address {text.partition('/')[0]}"
    return ""


def _told(loaded: Loaded, one: Found, what: str) -> Finding:
    finding = loaded.finding(("discover", one.by), f"{one}: {what}")
    return replace(finding, severity=Severity.NOTICE)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
