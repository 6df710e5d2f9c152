"""Plans that change no files of the group: stop, restart, destroy."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from rlxdeploy.errors import CompileError, Finding
from rlxdeploy.model.files import RemoteFiles
from rlxdeploy.model.plan import HostPlan, Plan, RankRow, Site, UnitAction
from rlxdeploy.model.resolution import Placed, Resolution
from rlxdeploy.model.step import StartRanks, Step, StopRanks
from rlxdeploy.model.survey import JobSeen, Survey
from rlxdeploy.model.vocabulary import Launch
from rlxdeploy.plan.clear import clearing
from rlxdeploy.plan.drift import drift
from rlxdeploy.plan.guard import foreign, is_foreign
from rlxdeploy.plan.hosts import supervisor_argv
from rlxdeploy.plan.mark import as_deployed
from rlxdeploy.plan.order import Order

KEEP = "keep"


def plan_stop(
    job: str,
    sites: Mapping[str, Site],
    survey: Survey,
    order: Order,
    ranks: frozenset[int] | None = None,
) -> Plan:
    """Return the plan that stops every rank of *job*, or *ranks* alone, and leaves its files.

    *sites* are the hosts to look at, by name; one that the survey lacks is left out.  Raises
    CompileError where another deployment holds the job, unless *order.adopt*.
    """
    return _plan(job, sites, survey, order, lambda site, seen: _stop(site, seen, ranks))


def plan_destroy(job: str, sites: Mapping[str, Site], survey: Survey, order: Order) -> Plan:
    """Return the plan that leaves nothing of *job*; arguments and errors as for `plan_stop`."""
    plan = _plan(job, sites, survey, order, lambda site, seen: clearing(site, seen, "as asked"))
    gone = (replace(row, action="remove") if row.action == KEEP else row for row in plan.ranks)
    return replace(plan, ranks=tuple(gone))


def plan_restart(resolution: Resolution, files: RemoteFiles, survey: Survey, order: Order) -> Plan:
    """Return the plan that starts the whole group anew with the files that are deployed.

    *files* are those of the deployed generation, for the runtime that supervises.  Raises
    CompileError as `plan_stop` does, and where a host has nothing deployed or not that runtime.
    """
    findings = [*_not_deployed(resolution, files, survey)]
    if findings:
        raise CompileError(findings)
    sites = {name: Site(one.host, one.tree, one.launch) for name, one in resolution.hosts.items()}

    order = as_deployed(order, (survey.hosts[name].job.deployed for name in sites))

    def part(site: Site, seen: JobSeen) -> HostPlan:
        return _restart(resolution.hosts[site.host.name], files, seen, order)

    return _plan(resolution.job, sites, survey, order, part)


def _plan(
    job: str,
    sites: Mapping[str, Site],
    survey: Survey,
    order: Order,
    part: Callable[[Site, JobSeen], HostPlan],
) -> Plan:
    seen = {name: survey.hosts[name].job for name in sites if name in survey.hosts}
    findings = [
        foreign(name, one.deployed, order.now)
        for name, one in seen.items()
        if one.deployed is not None and is_foreign(one.deployed, order) and not order.adopt
    ]
    if findings:
        raise CompileError(findings)
    hosts = {name: part(sites[name], one) for name, one in seen.items()}
    deployed = next((one.deployed for one in seen.values() if one.deployed is not None), None)
    return Plan(
        job=job,
        world=deployed.world if deployed else 0,
        topology="",
        release=deployed.release if deployed else "",
        plan=deployed.plan if deployed else "",
        generation=deployed.generation if deployed else 0,
        deployment=order.deployment,
        join=order.ready,
        join_timeout=order.join_timeout,
        hosts=hosts,
        ranks=tuple(sorted(_rows(hosts, seen), key=lambda row: row.rank)),
        drift=drift(seen),
    )


def _rows(hosts: Mapping[str, HostPlan], seen: Mapping[str, JobSeen]) -> Iterator[RankRow]:
    for name, part in hosts.items():
        actions = {one.rank: one.action for one in part.actions}
        deployed = seen[name].deployed
        ranks = {*actions, *(deployed.ranks if deployed else ())}
        for rank in ranks:
            yield RankRow(rank, name, name, "", "", part.launch, actions.get(rank, KEEP))


def _stop(site: Site, seen: JobSeen, only: frozenset[int] | None) -> HostPlan:
    ranks = tuple(rank for rank in _up(seen) if only is None or rank in only)
    return HostPlan(
        site.host,
        site.tree,
        site.launch,
        actions=tuple(UnitAction(rank, "stop", "as asked") for rank in ranks),
        go=(StopRanks(ranks),) if ranks else (),
    )


def _restart(placed: Placed, files: RemoteFiles, seen: JobSeen, order: Order) -> HostPlan:
    up, ranks = _up(seen), seen.deployed.ranks if seen.deployed else ()
    go: list[Step] = [StopRanks(up)] if up else []
    if ranks:
        go.append(StartRanks(ranks, order.boot, seen.current, _supervisor(placed, files)))
    return HostPlan(
        placed.host,
        placed.tree,
        placed.launch,
        actions=tuple(
            UnitAction(rank, "restart" if rank in up else "start", "as asked") for rank in ranks
        ),
        go=tuple(go),
    )


def _up(seen: JobSeen) -> tuple[int, ...]:
    """Return the ranks that run, or of which something may be left."""
    return tuple(one.rank for one in seen.ranks if one.active != "inactive")


def _supervisor(placed: Placed, files: RemoteFiles) -> tuple[str, ...]:
    if placed.launch != Launch.PROCESS:
        return ()
    return supervisor_argv(placed.python, _archive(placed, files))


def _archive(placed: Placed, files: RemoteFiles) -> str:
    return placed.tree.stored(files.hosts[placed.host.name].stored[0].digest)


def _not_deployed(resolution: Resolution, files: RemoteFiles, survey: Survey) -> Iterator[Finding]:
    for name, placed in resolution.hosts.items():
        seen = survey.hosts[name].job if name in survey.hosts else JobSeen()
        if seen.deployed is None:
            yield Finding(f"{name}: nothing is deployed there", remedy="apply first")
        elif placed.launch == Launch.PROCESS and _archive(placed, files) not in seen.files:
            yield Finding(f"{name}: another runtime is deployed there", remedy="apply first")
