"""The stage from RemoteFiles and Survey to Plan."""

from collections.abc import Callable, Iterator, Mapping

from rlxdeploy.errors import Finding, Severity
from rlxdeploy.model.files import RemoteFiles
from rlxdeploy.model.plan import HostPlan, Plan, RankRow, Site
from rlxdeploy.model.resolution import Resolution, Seat
from rlxdeploy.model.survey import Survey
from rlxdeploy.plan.clear import leaving
from rlxdeploy.plan.diff import Wanted, wanted_files
from rlxdeploy.plan.drift import drift
from rlxdeploy.plan.epoch import because, causes, finished, named
from rlxdeploy.plan.guard import lost_hosts, refuse
from rlxdeploy.plan.hosts import Aim, Epoch, host_plan
from rlxdeploy.plan.order import Order
from rlxdeploy.plan.recalled import recalled, refuse_recalled, without

# How each host should be in a generation.
RenderAt = Callable[[int], RemoteFiles]


def make_plan(resolution: Resolution, render_at: RenderAt, survey: Survey, order: Order) -> Plan:
    """Return the steps from the hosts as surveyed to the group as resolved.

    The generation is the surveyed one, and where the group restarts a new one: higher than any that
    the hosts or the record know, for after a rollback there were higher ones.  Raises CompileError
    where a host belongs to another deployment (unless *order.adopt*), was not surveyed, or changes
    its launch; an ExceptionGroup of Unreachable where the group restarts and a host is only
    recalled; and what *render_at* raises.
    """
    refuse(resolution, survey, order)
    asked = without(resolution, survey.recalled)
    deployed = [survey.hosts[host].job.deployed for host in asked.hosts]
    generation = max((one.generation for one in deployed if one is not None), default=0)
    same = render_at(generation)
    found = causes(asked, _wanted(asked, same), survey, ends=order.ends)
    if found:
        refuse_recalled(survey)
    files = render_at(_next(survey, order)) if found else same
    aim = Aim(resolution, files, order, Epoch(bool(found), found))
    hosts = {
        name: host_plan(placed, survey.hosts[name].job, aim)
        if name in asked.hosts
        else HostPlan(placed.host, placed.tree, placed.launch)
        for name, placed in resolution.hosts.items()
    }
    known = resolution.hosts.keys() | resolution.merged.keys()
    left = {name: site for name, site in order.left.items() if name not in known}
    lost = dict(lost_hosts(left, survey, order))
    cleared = dict(_cleared(left, lost, survey, order))
    first = not any(deployed)
    return Plan(
        job=resolution.job,
        world=resolution.world,
        topology=str(resolution.topology),
        release=files.release,
        plan=files.plan,
        generation=files.generation,
        deployment=order.deployment,
        join=order.ready,
        join_timeout=order.join_timeout,
        hosts={**hosts, **cleared},
        ranks=tuple(_row(seat, resolution, hosts) for seat in resolution.seats),
        why=because(found, _moves(hosts), first=first) if found else (),
        notices=(*resolution.notices, *recalled(survey), *lost.values(), *_noticed(aim, survey)),
        explained=_explained(resolution),
        absent=resolution.absent,
        unasked=survey.recalled,
        drift=drift({name: survey.hosts[name].job for name in (*hosts, *cleared)}),
    )


def _next(survey: Survey, order: Order) -> int:
    """Return the generation of an epoch that has never been."""
    jobs = [facts.job for facts in survey.hosts.values()]
    marks = [mark for job in jobs for mark in (job.deployed, *job.kept.values()) if mark]
    return max([order.generation, *(mark.generation for mark in marks)]) + 1


def _wanted(resolution: Resolution, files: RemoteFiles) -> Mapping[str, tuple[Wanted, ...]]:
    return {
        name: wanted_files(files.hosts[name], placed.tree)
        for name, placed in resolution.hosts.items()
    }


def _cleared(
    left: Mapping[str, Site], lost: Mapping[str, Finding], survey: Survey, order: Order
) -> Iterator[tuple[str, HostPlan]]:
    for name, site in left.items():
        if name not in lost:
            part = leaving(site, survey.hosts[name].job, order)
            if not part.empty:
                yield name, part


def _moves(hosts: Mapping[str, HostPlan]) -> Mapping[str, tuple[int, ...]]:
    """Return the ranks that restart, and those that start since nothing of them is up."""
    actions = [one for part in hosts.values() for one in part.actions]
    return {
        word: tuple(one.rank for one in actions if one.action == word)
        for word in ("restart", "start")
    }


def _row(seat: Seat, resolution: Resolution, hosts: Mapping[str, HostPlan]) -> RankRow:
    part = hosts.get(seat.host)
    actions = {one.rank: one.action for one in part.actions} if part else {}
    placed = resolution.hosts.get(seat.host)
    return RankRow(
        rank=seat.rank,
        node=seat.node,
        host=seat.host,
        device=", ".join(seat.devices),
        address="" if seat.peer is None else str(seat.peer),
        launch=str(placed.launch) if placed and seat.managed else "",
        action=actions.get(seat.rank, "keep") if seat.managed else "unmanaged",
        managed=seat.managed,
        layers=seat.share.layers or "",
    )


def _noticed(aim: Aim, survey: Survey) -> Iterator[Finding]:
    """Yield what a restart does not reach, or who is left to rest without one."""
    elsewhere = tuple(seat.rank for seat in aim.resolution.seats if not seat.managed)
    over = finished(aim.resolution, survey)
    if elsewhere and aim.epoch.restart:
        what = f"{named(elsewhere)}: not managed, start again by hand when the others do"
        yield Finding(what, severity=Severity.NOTICE)
    if over and not aim.epoch.restart:
        what = f"{named(over)}: finished with exit 0, so apply lets the group rest"
        yield Finding(what, remedy="`restart` runs it again", severity=Severity.NOTICE)


def _explained(resolution: Resolution) -> Mapping[str, Mapping[str, str]]:
    hosts = {f"host {name}": placed.why for name, placed in resolution.hosts.items()}
    return hosts | {f"rank {seat.rank}": seat.why for seat in resolution.seats}
