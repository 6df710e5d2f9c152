"""Which of the hosts that were found are worth a survey.

Out go those that are excluded, those that are a written node or were found already, and those
beyond `max_hosts`; each of these is told.  Whether two names are one machine only the machine can
say, so two ways to one address (the ports of a gateway) stay two until it is asked.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address, ip_network

from rlxdeploy.errors import CompileError, Finding, Severity
from rlxdeploy.model.addresses import HostPort, parse_address, parse_host
from rlxdeploy.model.cidr import parse_cidr
from rlxdeploy.model.found import Found
from rlxdeploy.model.inventory import Node
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.resolve.aliases import bare_host, way
from rlxdeploy.resolve.candidates import Subnet


@dataclass(frozen=True, slots=True)
class Excluded:
    """What is never to be taken: subnets (an address is one of its own), and names of hosts."""

    subnets: tuple[Subnet, ...] = ()
    names: frozenset[str] = frozenset()

    def has(self, address: str) -> bool:
        """Tell whether the numeric *address* is meant."""
        return any(ip_address(address) in subnet for subnet in self.subnets)

    def has_found(self, one: Found) -> bool:
        """Tell whether *one* is meant, as far as anybody knows before it is asked."""
        names = {bare_host(one.ssh), one.address, one.said.lower()} - {""}
        return bool(names & self.names) or (bool(one.address) and self.has(one.address))


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
    alone = [ip_network(address) for address in known if is_address(address)]
    return Excluded((*subnets, *alone), frozenset(hosts))


def names_excluded(loaded: Loaded) -> tuple[str, ...]:
    """Return the host names in `exclude`, whose addresses `excluded` wants to know."""
    texts = loaded.inventory.discover.exclude
    return tuple(text for text in texts if "/" not in text and not is_address(text))


def sifted(loaded: Loaded, found: Iterable[Found], without: Excluded) -> Sifted:
    """Return the hosts to survey, each once and `max_hosts` at most.

    Raises CompileError where an alias is to be a peer address and cannot be one.
    """
    result, seen = Sifted(), dict(_written(loaded))
    most = loaded.inventory.discover.max_hosts
    over = 0
    for one in found:
        keys = tuple(_keys(loaded, one))
        first = next((seen[key] for key in keys if key in seen), None)
        if without.has_found(one):
            result.notices.append(told(loaded, one, f"{one.how}, and excluded"))
        elif first is not None:
            result.notices.append(told(loaded, one, f"found again: it is {first} already"))
        elif len(result.found) == most:
            over += 1
        else:
            result.found.append(one)
            seen[keys[0]] = f"found by {one.by}"
    if over:
        what = f"{over} found hosts more are left out"
        finding = loaded.finding(("discover", "max_hosts"), what, "narrow the search, or raise it")
        result.notices.append(replace(finding, severity=Severity.WARNING))
    return result


def unasked_address(loaded: Loaded, one: Found) -> str:
    """Return the `addr` of a node that was found and is not probed, as upstream gives it.

    Raises CompileError where its alias cannot be one.
    """
    try:
        host = parse_host(one.address or bare_host(one.ssh))
    except ValueError as error:
        raise CompileError([loaded.finding(("discover", one.by), str(error))]) from None
    return str(HostPort(host, loaded.inventory.discover.port))


def told(loaded: Loaded, one: Found, what: str) -> Finding:
    """Return a notice about *one*, placed where `[discover]` led to it."""
    finding = loaded.finding(("discover", one.by), f"{one}: {what}")
    return replace(finding, severity=Severity.NOTICE)


_Key = tuple[str, str]


def _keys(loaded: Loaded, one: Found) -> Iterator[_Key]:
    """Yield its own key first, and then others by which a written node may be it.

    Without a probe there is upstream's alone: the exact `addr`.
    """
    if not loaded.inventory.discover.probe:
        yield "addr", unasked_address(loaded, one)
        return
    yield "way", way(one.ssh)
    if one.address:
        yield "unasked", one.address


def _written(loaded: Loaded) -> Iterator[tuple[_Key, str]]:
    """Yield by what each written node is known, and where it stands; the first one last."""
    for index, node in reversed([*enumerate(loaded.inventory.node)]):
        place = f"the node at {loaded.place_of(('node', index))}"
        yield from ((key, place) for key in _keys_of(node))


def _keys_of(node: Node) -> Iterator[_Key]:
    if node.ssh:
        yield "way", way(node.ssh)
    if node.addr:
        host = parse_address(node.addr).host
        yield "addr", node.addr
        yield "way", host
        # Nobody asks it whether it is the machine that was found: the address has to do.
        if not node.managed:
            yield "unasked", host


def is_address(text: str) -> bool:
    """Tell whether *text* is a numeric address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
