"""Plans that go back to a release which the hosts have kept, with all that it had outside."""

from collections.abc import Iterator, Mapping

from rlxdeploy.errors import CompileError, Finding
from rlxdeploy.model.plan import HostPlan, Plan, RankRow, Site, UnitAction
from rlxdeploy.model.step import ReloadUnits, RestoreRelease, StartRanks, Step, StopRanks
from rlxdeploy.model.survey import Deployed, JobSeen, Survey
from rlxdeploy.model.vocabulary import Launch
from rlxdeploy.plan.back import way_back
from rlxdeploy.plan.clear import leaving
from rlxdeploy.plan.guard import age, foreign, is_foreign
from rlxdeploy.plan.mark import as_deployed
from rlxdeploy.plan.order import Order


def plan_rollback(
    sites: Mapping[str, Site],
    survey: Survey,
    order: Order,
    release: str = "",
    *,
    unmanaged: frozenset[int] = frozenset(),
) -> Plan:
    """Return the plan that has every host at *release* again, by default at the one before.

    *unmanaged* are ranks that no host of ours has.
    A release that no host has confirmed yet is taken back as it would be by itself: then the plan
    has ways back alone, and *release* is not to be given.  Raises CompileError where the hosts have
    no such release, or not all of it, or belong to another deployment.
    """
    seen = {name: survey.hosts[name].job for name in sites if name in survey.hosts}
    _refuse_foreign(seen, order)
    unconfirmed = {name: one for name, one in seen.items() if one.unconfirmed is not None}
    if unconfirmed and not release:
        parts = {name: _taken_back(sites[name], one, order) for name, one in unconfirmed.items()}
        marks = {name: one.deployed for name, one in unconfirmed.items() if one.deployed}
        before = next((one.unconfirmed or "" for one in unconfirmed.values()), "")
        return _plan(before, marks, parts, order)
    wanted = release or _before(seen, order)
    marks = {name: one.kept[wanted] for name, one in seen.items() if wanted in one.kept}
    if not marks:
        raise _no_such_release(wanted, seen, order)
    _refuse_a_part(wanted, marks, unmanaged)
    order = as_deployed(order, marks.values())
    parts = {name: _part(sites[name], one, wanted, order) for name, one in seen.items()}
    return _plan(wanted, marks, parts, order)


def _part(site: Site, job: JobSeen, release: str, order: Order) -> HostPlan:
    mark = job.kept.get(release)
    if mark is None:
        return leaving(site, job, order)
    up = tuple(one.rank for one in job.ranks if one.active != "inactive")
    go: list[Step] = [StopRanks(up)] if up else []
    go.append(RestoreRelease(release))
    go += [ReloadUnits()] if site.launch != Launch.PROCESS else []
    go += [StartRanks(mark.ranks, order.boot, release)] if mark.ranks else []
    return HostPlan(
        site.host,
        site.tree,
        site.launch,
        actions=tuple(
            UnitAction(rank, "restart" if rank in up else "start", "as asked")
            for rank in mark.ranks
        ),
        go=tuple(go),
        back=way_back(job, mark.ranks, mark.plan, order),
    )


def _taken_back(site: Site, job: JobSeen, order: Order) -> HostPlan:
    ranks = job.deployed.ranks if job.deployed else ()
    return HostPlan(site.host, site.tree, site.launch, back=way_back(job, ranks, "", order))


def _plan(
    release: str,
    marks: Mapping[str, Deployed],
    parts: Mapping[str, HostPlan],
    order: Order,
) -> Plan:
    mark = next(iter(marks.values()), None)
    return Plan(
        job=next(iter(parts.values())).tree.job,
        world=mark.world if mark else 0,
        topology="",
        release=release,
        plan=mark.plan if mark else "",
        generation=mark.generation if mark else 0,
        deployment=order.deployment,
        join=order.ready,
        join_timeout=order.join_timeout,
        hosts=parts,
        ranks=tuple(sorted(_rows(marks, parts), key=lambda row: row.rank)),
        why=(f"back to release {release}" if release else "back to nothing",),
    )


def _rows(marks: Mapping[str, Deployed], parts: Mapping[str, HostPlan]) -> Iterator[RankRow]:
    for name, mark in marks.items():
        actions = {one.rank: one.action for one in parts[name].actions}
        for rank in mark.ranks:
            action = actions.get(rank, "restart")
            yield RankRow(rank, name, name, "", "", parts[name].launch, action)


def _before(seen: Mapping[str, JobSeen], order: Order) -> str:
    """Return what stood before the current release: releases come in the order they stood."""
    for one in seen.values():
        kept = [release for release in one.releases if release in one.kept]
        if kept:
            return kept[-1]
    raise _no_such_release("", seen, order)


def _refuse_foreign(seen: Mapping[str, JobSeen], order: Order) -> None:
    findings = [
        foreign(name, one.deployed, order.now)
        for name, one in seen.items()
        if one.deployed is not None and is_foreign(one.deployed, order) and not order.adopt
    ]
    if findings:
        raise CompileError(findings)


def _refuse_a_part(release: str, marks: Mapping[str, Deployed], unmanaged: frozenset[int]) -> None:
    """Raise where ranks of *release* lay on hosts that have it no more."""
    world = max(mark.world for mark in marks.values())
    found = {rank for mark in marks.values() for rank in mark.ranks}
    if missing := {*range(world)} - found - unmanaged:
        lacking = ", ".join(map(str, sorted(missing)))
        what = f"release {release}: the hosts of rank {lacking} do not have it any more"
        raise CompileError([Finding(what, remedy="apply the inventory as it was then")])


def _no_such_release(release: str, seen: Mapping[str, JobSeen], order: Order) -> CompileError:
    kept: dict[str, float] = {}
    for one in seen.values():
        kept |= {name: mark.applied_at for name, mark in one.kept.items()}
    there = "; ".join(f"{name} (applied {age(order.now - at)})" for name, at in kept.items())
    what = f"no host has release {release} to go back to" if release else "nothing to go back to"
    return CompileError([Finding(what, remedy=f"there is: {there}" if there else "")])
