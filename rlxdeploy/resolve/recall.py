"""Found hosts that have ranks since the last apply: a search that misses one does not let it go.

One late answer is no reason to stop a rank.  Such a host is asked as if it had been found, and if
it does not answer, it is missed as a written one would be.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from ipaddress import ip_address

from rlxdeploy.errors import Finding
from rlxdeploy.model.cidr import parse_cidr
from rlxdeploy.model.found import Found
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.record import HostRecord
from rlxdeploy.model.survey import Survey
from rlxdeploy.resolve.aliases import bare_host
from rlxdeploy.resolve.sift import Excluded, is_address, told

# In the order in which the search takes its ways.
_WAYS = ("ssh_hosts", "subnet", "mdns")


def remembered(loaded: Loaded, hosts: Iterable[HostRecord], without: Excluded) -> tuple[Found, ...]:
    """Return those of *hosts*, the last apply's, that `[discover]` still means, with their ranks.

    Who is not probed is nobody's member: there, as upstream has it, whoever answers is a node.
    """
    if not loaded.inventory.discover.probe:
        return ()
    written = {node.ssh for node in loaded.inventory.node}
    known = (_known(loaded, one) for one in hosts if one.ranks and one.host.name not in written)
    return tuple(one for one in known if one is not None and not without.has_found(one))


def recalled(found: Iterable[Found], known: Iterable[Found]) -> list[Found]:
    """Return *found* with the ranks that are *known*, and who was missed in his place."""
    members = {one.ssh: one for one in known}
    answered = [
        replace(one, ranks=members[one.ssh].ranks) if one.ssh in members else one for one in found
    ]
    names = {one.ssh for one in answered}
    silent = (one for name, one in members.items() if name not in names)
    return sorted((*answered, *silent), key=_order)


def missed(loaded: Loaded, found: Iterable[Found], asked: Iterable[Found]) -> Iterator[Finding]:
    """Yield what to say of those who are *asked* although nobody *found* them this time."""
    names = {one.ssh for one in found}
    what = "not found this time, and asked all the same: it has ranks since the last apply"
    yield from (told(loaded, one, what) for one in asked if one.ssh not in names)


def is_missed(one: Found, survey: Survey) -> bool:
    """Tell whether *one* is a member of the group and did not answer.

    A machine that is found under a new name has its ranks with it, and is not missed.
    """
    if not one.ranks or one.ssh in survey.hosts:
        return False
    strangers = (survey.hosts.get(other.ssh) for other in survey.found if not other.ranks)
    marks = (facts.job.deployed for facts in strangers if facts and facts.job.deployed)
    return not any({*one.ranks} <= {*mark.ranks} for mark in marks)


def address_order(address: str) -> tuple[int, int]:
    """Return by what numeric addresses are sorted: those of IPv4 first."""
    parsed = ip_address(address)
    return parsed.version, int(parsed)


def _known(loaded: Loaded, host: HostRecord) -> Found | None:
    """Return *host* as the search would find it now, None where it would not."""
    wanted, name = loaded.inventory.discover, host.host.name
    if name in wanted.ssh_hosts:
        return Found(name, "ssh_hosts", ranks=host.ranks)
    if wanted.mdns and host.found and host.found.by == "mdns":
        return replace(host.found, ranks=host.ranks)
    address = bare_host(name)
    if wanted.subnet and is_address(address) and _is_in(address, wanted.subnet):
        return Found(name, "subnet", address, ranks=host.ranks)
    return None


def _is_in(address: str, subnet: str) -> bool:
    return ip_address(address) in parse_cidr(subnet).network


def _order(one: Found) -> tuple[int, tuple[int, int]]:
    """Return by what found hosts are sorted; aliases stay in the order of the file."""
    return _WAYS.index(one.by), address_order(one.address) if one.address else (0, 0)
