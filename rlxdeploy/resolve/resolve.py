"""From inventory and survey to the group: `resolve` is the stage, the rest are its parts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.names import parse_layers
from rlxdeploy.model.resolution import Endpoint, Placed, Resolution, Seat, Share
from rlxdeploy.model.survey import Survey
from rlxdeploy.model.vocabulary import Hardening, Policy, Role
from rlxdeploy.resolve.allot import Allotted, allot
from rlxdeploy.resolve.controller import Controller
from rlxdeploy.resolve.devices import CPU
from rlxdeploy.resolve.endpoints import Dialled, endpoints
from rlxdeploy.resolve.entries import CONTROLLER, Entry, wanted_python
from rlxdeploy.resolve.group import Group, Stand, group
from rlxdeploy.resolve.launch import check_groups
from rlxdeploy.resolve.machines import in_file_order
from rlxdeploy.resolve.placing import place
from rlxdeploy.resolve.programs import argv, rank_python
from rlxdeploy.resolve.promote import NOBODY, Promotion
from rlxdeploy.resolve.report import Report
from rlxdeploy.resolve.shares import Layers, layer_shares


def resolve(
    loaded: Loaded,
    survey: Survey,
    controller: Controller,
    promotion: Promotion = NOBODY,
    *,
    max_silent: float = 0,
) -> Resolution:
    """Settle who is which rank, on which device, at which address.

    Raises CompileError with every error found, UsageError where *promotion* means nobody, and an
    ExceptionGroup of Unreachable if more than *max_silent* written hosts have not answered, which
    the others go without.
    """
    report = Report(loaded)
    survey = in_file_order(survey, loaded)
    controller = _as_surveyed(controller, survey)
    members = group(survey, controller, report, promotion, max_silent=max_silent)
    report.raise_errors()
    allotted = allot(members, report)
    settled = _Settled(
        dialled=endpoints(members, controller, report),
        allotted=allotted,
        layers=layer_shares(members, allotted, report, controller.planned),
        hosts=place(members, survey, controller, report),
        local=_local(members),
    )
    seats = _seats(members, settled, controller, report)
    _check_devices(seats, settled.hosts, survey, report)
    report.raise_errors()
    job = loaded.inventory.job
    return Resolution(
        job=loaded.job,
        world=len(seats),
        topology=job.topology.value,
        wire=job.effective_wire.value,
        security=job.effective_security.value,
        seats=seats,
        hosts=settled.hosts,
        master=_master(settled.dialled, loaded),
        notices=tuple(report.notices),
        merged=members.merged,
        absent=members.absent,
        placement=settled.layers.mark,
    )


@dataclass(frozen=True, slots=True)
class _Settled:
    """What the parts have found, by rank or by host; *local* is (LOCAL_RANK, size, NODE_RANK)."""

    dialled: Mapping[int, Dialled]
    allotted: Mapping[int, Allotted]
    layers: Layers
    hosts: Mapping[str, Placed]
    local: Mapping[int, tuple[int, int, int]]


def _as_surveyed(controller: Controller, survey: Survey) -> Controller:
    """Let a saved survey speak for its own controller: it compiles alike on every machine."""
    facts = survey.hosts.get(CONTROLLER)
    asked = facts.platform.python if facts else ""
    return replace(controller, interpreter=asked) if asked else controller


def _local(members: Group) -> dict[int, tuple[int, int, int]]:
    """Count ranks per machine and machines by their lowest rank, as torchrun does."""
    machines: dict[str, list[int]] = {}
    for stand in sorted(members.stands, key=lambda one: one.rank):
        machines.setdefault(stand.machine, []).append(stand.rank)
    return {
        rank: (position, len(ranks), node)
        for node, ranks in enumerate(machines.values())
        for position, rank in enumerate(ranks)
    }


def _master(dialled: Mapping[int, Dialled], loaded: Loaded) -> Endpoint:
    return Endpoint(dialled[0].endpoint.address, loaded.inventory.network.master_port)


def _seats(
    members: Group, settled: _Settled, controller: Controller, report: Report
) -> tuple[Seat, ...]:
    stands = sorted(members.stands, key=lambda one: one.rank)
    return tuple(_seat(stand, settled, controller, report) for stand in stands)


def _seat(stand: Stand, settled: _Settled, controller: Controller, report: Report) -> Seat:
    entry, node, loaded = stand.entry, stand.entry.node, report.loaded
    dialled, allotted = settled.dialled.get(stand.rank), settled.allotted[stand.rank]
    local_rank, local_world, node_rank = settled.local[stand.rank]
    runs = _runs(stand, settled.hosts, controller, report)
    return Seat(
        rank=stand.rank,
        node=entry.name,
        index=entry.index,
        host=stand.machine if node.managed else entry.name,
        slot=stand.slot,
        local_rank=local_rank,
        local_world=local_world,
        node_rank=node_rank,
        devices=allotted.devices,
        visible=allotted.visible,
        peer=dialled.endpoint if dialled else None,
        bind=node.bind if dialled else None,
        python=runs.python,
        argv=runs.argv,
        env={**loaded.inventory.job.env, **node.env},
        share=_share(entry, loaded, settled.layers),
        managed=node.managed,
        why={
            "rank": stand.why,
            "node": str(loaded.place_of(entry.key())),
            "host": _why_host(stand, loaded),
            "device": allotted.why,
            **({"layers": why} if (why := settled.layers.why.get(entry.index)) else {}),
            **({"address": dialled.why_address, "port": dialled.why_port} if dialled else {}),
            **({"bind": loaded.origin(entry.key("bind"))} if dialled and node.bind else {}),
            **(
                {"python": runs.why, "command": loaded.origin(("job", "command"))}
                if runs.why
                else {}
            ),
        },
    )


def _why_host(stand: Stand, loaded: Loaded) -> str:
    """Return why the rank is on its host, which may have a name that the node does not write."""
    entry = stand.entry
    if not entry.node.managed:
        if entry.index in loaded.told and not loaded.written(entry.key("managed")):
            return "known by its NodeCaps alone, and taken to run elsewhere"
        return f"{loaded.origin(entry.key('managed'))}: it runs elsewhere"
    ssh = loaded.origin(entry.key("ssh")) if entry.node.ssh else "ssh is unwritten: the controller"
    same = f"; {entry.host.name} is {stand.machine} under another name"
    return ssh + (same if entry.host.name != stand.machine else "")


def _check_devices(
    seats: tuple[Seat, ...], hosts: Mapping[str, Placed], survey: Survey, report: Report
) -> None:
    """Warn where a rank's account or its hardening keeps it from its devices."""
    labels: dict[str, set[str]] = {name: set() for name in hosts}
    strict = report.loaded.inventory.job.hardening is Hardening.STRICT
    for seat in seats:
        if seat.managed:
            labels[seat.host].add(seat.devices[0])
        # Where the device is written, the inventory's own check has said so.
        unwritten = report.loaded.inventory.node[seat.index].device is None
        if strict and unwritten and seat.devices[0] != CPU:
            what = f"hardening strict hides {seat.devices[0]} from rank {seat.rank}"
            report.warning(("job", "hardening"), what, 'write hardening = "gpu"')
    for name, placed in hosts.items():
        check_groups(survey.hosts[name], placed.user, labels[name], report)


@dataclass(frozen=True, slots=True)
class _Runs:
    """What a rank is started with; nothing for an unmanaged node."""

    python: str = ""
    argv: tuple[str, ...] = ()
    why: str = ""


def _runs(
    stand: Stand, hosts: Mapping[str, Placed], controller: Controller, report: Report
) -> _Runs:
    if stand.facts is None:
        return _Runs()
    wanted = wanted_python(report.loaded, stand.entry, controller.interpreter)
    python = rank_python(wanted, stand.facts, report)
    workdir = hosts[stand.machine].workdir
    return _Runs(python, argv(python, workdir, stand.facts, report), wanted.why)


def _share(entry: Entry, loaded: Loaded, shares: Layers) -> Share:
    node, inventory = entry.node, loaded.inventory
    manual = inventory.placement.policy is Policy.MANUAL
    layers = node.layers if manual else shares.ranges.get(entry.index)
    return Share(
        ckpt_dir=node.ckpt_dir,
        precision=node.precision,
        kv_cache=node.kv_cache.value,
        rng_seed=inventory.seed_of(node),
        layers="{}:{}".format(*parse_layers(layers)) if layers else None,
        max_ram_gb=node.max_ram_gb,
        role=Role.ACTIVE.value,
    )
