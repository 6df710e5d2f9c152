"""Who takes part: which nodes have ranks, on which machines, under which numbers."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from rlxdeploy.errors import Severity, Unreachable
from rlxdeploy.model.survey import HostFacts, Network, Survey
from rlxdeploy.model.vocabulary import Role, Topology
from rlxdeploy.resolve.candidates import Address, plain_address
from rlxdeploy.resolve.claims import Deployed, claims, reason
from rlxdeploy.resolve.controller import Controller
from rlxdeploy.resolve.entries import CONTROLLER, Entry, entries
from rlxdeploy.resolve.machines import lookalikes, merged
from rlxdeploy.resolve.promote import NOBODY, Promotion, promoted
from rlxdeploy.resolve.ranks import Claim, numbers
from rlxdeploy.resolve.report import Report

# Beyond it a mesh forms slowly, holds more sockets than most processes may, and fills PEERS.
LARGE_MESH = 256

# What a person may not expect of a host that nobody wrote.
_MEMBER = "it has ranks since the last apply: write it in exclude to let it go"


@dataclass(frozen=True, slots=True)
class Stand:
    """One rank to be: a slot of a node, on a machine; *facts* are None for an unmanaged node."""

    entry: Entry
    slot: int
    rank: int
    why: str
    machine: str
    facts: HostFacts | None


@dataclass(frozen=True, slots=True)
class Group:
    """*stands* in the order of the file, *holders* the standbys' entries, *networks* by machine.

    *absent* names the nodes that would have ranks if their hosts had answered.
    """

    stands: tuple[Stand, ...]
    holders: tuple[Entry, ...]
    networks: Mapping[str, Network | None]
    merged: Mapping[str, str]
    absent: tuple[str, ...]


def group(
    survey: Survey,
    controller: Controller,
    report: Report,
    promotion: Promotion = NOBODY,
    *,
    max_silent: float = 0,
) -> Group:
    """Return who takes part.

    Raises an ExceptionGroup of Unreachable if more than *max_silent* written hosts have not
    answered, and UsageError where *promotion* means nobody.
    """
    same = merged(survey)
    for first, second in lookalikes(survey, same):
        what = f"{first} and {second} have one machine-id and are taken for two machines"
        report.notice((), what, "give a copied system a machine-id of its own")
    cast = promoted(entries(report.loaded), promotion, report)
    present = _present(cast, survey, report, max_silent)
    _tell_of_roles(cast, survey, report)
    there = {entry.index for entry in present}
    active = [entry for entry in present if entry.node.role.has_rank]
    _check_counts(active, report)
    _check_mesh(sum(entry.node.slots for entry in active), report)
    machines = {entry.index: _machine(entry, survey, same, controller) for entry in active}
    for entry in active:
        _check_local(entry, survey, controller, report)
    networks = {name: _network(name, survey) for name in machines.values()}
    return Group(
        stands=tuple(_stands(active, machines, Deployed(survey, promotion, same), report)),
        holders=tuple(one for one in present if one.node.role is Role.STANDBY and one.node.managed),
        networks=networks,
        merged=same,
        absent=tuple(one.name for one in cast if one.node.role.has_rank and one.index not in there),
    )


def _check_counts(active: list[Entry], report: Report) -> None:
    """Hold found nodes to the numbers written; written ones alone have been counted already."""
    job, discover = report.loaded.inventory.job, report.loaded.inventory.discover
    if not active:
        said = report.loaded.notices
        report.errors += (one for one in said if one.severity is Severity.WARNING)
        what = "no node with a rank is left" + ("" if discover.is_empty else " or was found")
        report.error(("node",), what)
    if discover.is_empty:
        return
    if job.expect is not None and len(active) != job.expect:
        names = ", ".join(entry.name for entry in active)
        report.error(("job", "expect"), f"{job.expect} expected, {len(active)} found: {names}")
    if job.min_nodes is not None and len(active) < job.min_nodes:
        report.error(("job", "min_nodes"), f"{job.min_nodes} wanted, {len(active)} found")


def _check_mesh(world: int, report: Report) -> None:
    """Warn of a mesh in which every rank holds hundreds of connections."""
    if report.loaded.inventory.job.topology is Topology.MESH and world > LARGE_MESH:
        links = f"{world * (world - 1) // 2:,}"
        what = (
            f"{world:,} ranks in a mesh are {links} connections, and each rank has a PEERS of all"
        )
        remedy = 'write topology = "star" where all go through rank 0 anyway'
        report.warning(("job", "topology"), what, remedy)


def addresses_of(entry: Entry, controller: Controller) -> tuple[Address, ...]:
    """Return the addresses that the node's `addr` stands for, none without one."""
    if entry.addr is None:
        return ()
    found = (entry.addr.host,) if entry.addr.ip else controller.addresses(entry.addr.host)
    return tuple(map(plain_address, found))


def _present(cast: list[Entry], survey: Survey, report: Report, most: float) -> list[Entry]:
    """Return the nodes of *cast* that take part in this plan; draining ones do not.

    Raises an ExceptionGroup where more than *most* hosts, and more than the inventory allows,
    have not answered.
    """
    wanted = [one for one in cast if one.node.role is not Role.DRAINING]
    silent = [one for one in wanted if one.node.managed and one.host.name not in survey.hosts]
    absent = {one.index for one in silent}
    present = [one for one in wanted if one.index not in absent]
    enough = report.loaded.inventory.job.min_nodes
    active = sum(one.node.role.has_rank for one in present)
    hosts = {one.host.name: survey.failed.get(one.host.name, "not surveyed") for one in silent}
    if len(hosts) > most and (enough is None or active < enough):
        count = f"{len(hosts)} of {len({one.host.name for one in wanted})} hosts failed"
        found = {one.host.name for one in silent if one.index in report.loaded.found}
        raise ExceptionGroup(count, [_silent(host, survey, found) for host in hosts])
    for entry in silent:
        report.warning(entry.key(), f"{entry.name} is left out: {hosts[entry.host.name]}")
    return present


def _silent(host: str, survey: Survey, found: Collection[str]) -> Unreachable:
    return survey.error_of(host, _MEMBER if host in found else "")


def _machine(entry: Entry, survey: Survey, same: Mapping[str, str], controller: Controller) -> str:
    """Return the machine of *entry*; an unmanaged node may share that of a managed one."""
    if entry.node.managed:
        return same.get(entry.host.name, entry.host.name)
    written = addresses_of(entry, controller)
    if any(one.is_loopback for one in written) and CONTROLLER in survey.hosts:
        return CONTROLLER
    for name, facts in survey.hosts.items():
        if own_addresses(facts.network) & set(written):
            return same.get(name, name)
    return f"unmanaged {entry.name}"


def own_addresses(network: Network) -> set[Address]:
    """Return the addresses of all interfaces."""
    texts = (text for one in network.interfaces for text in one.addresses)
    return {plain_address(text.partition("/")[0]) for text in texts}


def _check_local(entry: Entry, survey: Survey, controller: Controller, report: Report) -> None:
    """Refuse a node without `ssh` that has somebody else's address: it was meant to have one."""
    if not entry.node.managed or not entry.host.is_controller:
        return
    own = own_addresses(survey.hosts[CONTROLLER].network)
    written = addresses_of(entry, controller)
    if written and not any(one.is_loopback or one in own for one in written):
        what = f"{entry.node.addr} is no address of the controller, and the node has no ssh"
        report.error(entry.key("addr"), what, "add ssh = … or managed = false")


def _network(machine: str, survey: Survey) -> Network | None:
    facts = survey.hosts.get(machine)
    return facts.network if facts else None


def _stands(
    active: list[Entry], machines: Mapping[int, str], deployed: Deployed, report: Report
) -> Iterator[Stand]:
    slots = [(entry, slot) for entry in active for slot in range(entry.node.slots)]
    claimed = claims(slots, machines, deployed, report)
    for (entry, slot), claim, rank in zip(slots, claimed, numbers(claimed), strict=True):
        machine = machines[entry.index]
        facts = deployed.survey.hosts.get(machine) if entry.node.managed else None
        _tell_of_move(entry, claim, rank, report)
        yield Stand(entry, slot, rank, reason(entry, claim, rank, report), machine, facts)


def _tell_of_move(entry: Entry, claim: Claim, rank: int, report: Report) -> None:
    if claim.held not in (None, rank):
        report.notice(entry.key(), f"rank {claim.held} of {entry.name} becomes rank {rank}")
    if entry.principal is not None:
        what = f"{entry.name} is promoted: it takes rank {rank} of {entry.principal.name}"
        remedy = 'write role = "active" here and role = "draining" there, or it goes back'
        report.notice(entry.key(), what, f"{remedy} with the next apply")


def _tell_of_roles(cast: list[Entry], survey: Survey, report: Report) -> None:
    """Say who has no rank, once for all, and where ranks cannot be stopped."""
    standbys = [entry.name for entry in cast if entry.node.role is Role.STANDBY]
    if standbys:
        what = f"standing by, with the files and without a rank: {', '.join(standbys)}"
        report.notice(("node",), what)
    draining = [entry for entry in cast if entry.node.role is Role.DRAINING and entry.node.managed]
    if draining:
        names = ", ".join(entry.name for entry in draining)
        report.notice(("node",), f"draining, without a rank: {names}")
    for entry in draining:
        if entry.host.name not in survey.hosts:
            why = survey.failed.get(entry.host.name, "not surveyed")
            what = f"{entry.name} is draining and did not answer: {why}"
            report.warning(entry.key(), what, "its ranks may still run there; apply again later")
