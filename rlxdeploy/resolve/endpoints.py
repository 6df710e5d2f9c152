"""Where each rank is dialled: its address, its port, and who may be there already."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from rlxdeploy.model.cidr import parse_cidr
from rlxdeploy.model.locate import KeyPath
from rlxdeploy.model.resolution import Endpoint
from rlxdeploy.model.vocabulary import Topology, Wire
from rlxdeploy.resolve.address import Ask, Rule, Settled, peer_addresses
from rlxdeploy.resolve.controller import Controller
from rlxdeploy.resolve.group import Group, Stand
from rlxdeploy.resolve.report import Report
from rlxdeploy.resolve.targets import LAST_PORT


@dataclass(frozen=True, slots=True)
class Dialled:
    """A rank's endpoint, and why it has that address and that port."""

    endpoint: Endpoint
    why_address: str
    why_port: str


def endpoints(group: Group, controller: Controller, report: Report) -> Mapping[int, Dialled]:
    """Return the endpoint of every rank that peers dial, by rank; those with a problem lack."""
    job, network = report.loaded.inventory.job, report.loaded.inventory.network
    star = job.topology is Topology.STAR
    dialled = [stand for stand in group.stands if stand.rank == 0 or not star]
    cidr = parse_cidr(network.cidr).network if network.cidr else None
    asks = [_ask(stand, controller) for stand in dialled]
    settled = peer_addresses(asks, group.networks, Rule(network.interface, cidr))
    ports = list(_ports(dialled, network.data_port, report))
    found: dict[int, Dialled] = {}
    for stand, one, (port, why) in zip(dialled, settled, ports, strict=True):
        if one.problem:
            report.error(stand.entry.key("addr"), one.problem, one.remedy)
        else:
            whence = f" ({_origin(stand, report)})" if stand.entry.addr else ""
            found[stand.rank] = Dialled(Endpoint(one.address, port), one.why + whence, why)
            _warn_of_nat(stand, one, report)
    _check(dialled, found, report)
    return found


def _ask(stand: Stand, controller: Controller) -> Ask:
    if (addr := stand.entry.addr) is None:
        return Ask(stand.machine)
    resolved = () if addr.ip else controller.addresses(addr.host)
    return Ask(stand.machine, addr.host, resolved)


def _ports(dialled: Sequence[Stand], data_port: int, report: Report) -> Iterator[tuple[int, str]]:
    """Yield each rank's port: of those that share machine and base, the k-th gets base + k."""
    counts: dict[tuple[str, int], int] = {}
    for stand in dialled:
        base = stand.entry.port or data_port
        count = counts.get((stand.machine, base), 0)
        counts[stand.machine, base] = count + 1
        said = report.loaded.origin(_port_key(stand))
        if base + count > LAST_PORT:
            what = f"rank {stand.rank} would get port {base + count}, which does not exist"
            report.error(_port_key(stand), what, "start lower")
        yield base + count, said + (f", and {count} more on one machine" if count else "")


def _origin(stand: Stand, report: Report) -> str:
    return report.loaded.origin(stand.entry.key("addr"))


def _port_key(stand: Stand) -> KeyPath:
    if stand.entry.port is None:
        return ("network", "data_port")
    return stand.entry.key("addr") if stand.entry.addr else ("discover", "port")


def _warn_of_nat(stand: Stand, settled: Settled, report: Report) -> None:
    if "NAT" in settled.why and stand.entry.node.bind is None:
        what = f"no interface of {stand.machine} has {settled.address}, so rank {stand.rank}"
        remedy = 'write bind = "0.0.0.0" if it is forwarded there'
        report.warning(stand.entry.key("addr"), f"{what} cannot listen on it", remedy)


def _check(dialled: Sequence[Stand], found: Mapping[int, Dialled], report: Report) -> None:
    first: dict[Endpoint, Stand] = {}
    master = report.loaded.inventory.network.master_port
    for stand in dialled:
        if stand.rank not in found:
            continue
        endpoint = found[stand.rank].endpoint
        if (other := first.setdefault(endpoint, stand)) is not stand:
            place = report.loaded.place_of(other.entry.key("addr"))
            what = f"rank {stand.rank} and rank {other.rank} (at {place}) are both {endpoint}"
            report.error(stand.entry.key("addr"), what, "write another port")
        if endpoint.port == master:
            what = f"MASTER_PORT {master} is also the port of rank {stand.rank}"
            report.error(("network", "master_port"), what, "write another master_port")
        _check_wire(stand, endpoint, report)
        _check_free(stand, endpoint, report)


def _check_wire(stand: Stand, endpoint: Endpoint, report: Report) -> None:
    """Keep an unprotected wire on loopback where nobody wrote that it may leave."""
    job = report.loaded.inventory.job
    if job.effective_wire is not Wire.RLX or job.security is not None:
        return
    for key, address in (("addr", endpoint.address), ("bind", stand.entry.node.bind)):
        if address and not ip_address(address).is_loopback:
            what = f"the rlx wire is unprotected, and {address} is not loopback"
            remedy = 'write security = "none" in [job] if that is meant'
            report.error(stand.entry.key(key), what, remedy)


def _check_free(stand: Stand, endpoint: Endpoint, report: Report) -> None:
    own = stand.entry.node.bind or endpoint.address
    for holder in stand.facts.holders if stand.facts else ():
        if holder.is_stranger and holder.blocks(own, endpoint.port):
            what = f"{own} port {holder.port} on {stand.machine} is held by {holder}"
            report.error(_port_key(stand), f"rank {stand.rank}: {what}", holder.remedy)
