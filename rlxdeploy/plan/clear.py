"""What leaves nothing of a job on a host."""

from collections.abc import Iterator
from dataclasses import replace

from rlxdeploy.model.plan import FileChange, HostPlan, Site, UnitAction
from rlxdeploy.model.step import ReloadUnits, RemoveFile, RemoveJob, Step, StopRanks
from rlxdeploy.model.survey import JobSeen
from rlxdeploy.plan.back import way_back
from rlxdeploy.plan.diff import Eyes, is_unit, ours, removal
from rlxdeploy.plan.drift import own_files
from rlxdeploy.plan.epoch import RUNNING
from rlxdeploy.plan.order import Order


def clearing(site: Site, job: JobSeen, why: str) -> HostPlan:
    """Return what leaves nothing of the job on a host; empty where there is nothing."""
    seen = tuple(one for one in job.ranks if one.active != "inactive" or one.enabled)
    ranks = tuple(one.rank for one in seen)
    # What only lies in the store is no job's.
    stored = f"{site.tree.data}/store/"
    left = [path for path in own_files(job) if not path.startswith(stored)]
    if not (ranks or left or job.deployed or job.releases):
        return HostPlan(site.host, site.tree, site.launch)
    running = [one.rank for one in seen if one.active in RUNNING]
    return HostPlan(
        site.host,
        site.tree,
        site.launch,
        changes=tuple(_removals(job, site)),
        actions=tuple(UnitAction(rank, "stop", why) for rank in running),
        go=(*_stops(ranks), *_removes(site, job)),
    )


def leaving(site: Site, job: JobSeen, order: Order) -> HostPlan:
    """Return what clears a host that the group is left by: stopped at once, removed later.

    Until the others have joined without it, it can come back.
    """
    part = clearing(site, job, "its host left the group")
    if part.empty or job.deployed is None:
        return part
    removes = (*_removes(site, job),)
    stops = tuple(step for step in part.go if step not in removes)
    return replace(part, go=stops, confirm=removes, back=way_back(job, (), "", order))


def _stops(ranks: tuple[int, ...]) -> Iterator[Step]:
    if ranks:
        yield StopRanks(ranks, disable=True)


def _removes(site: Site, job: JobSeen) -> Iterator[Step]:
    units = [path for path in own_files(job) if is_unit(path, site.tree)]
    yield from (RemoveFile(path) for path in units)
    if units:
        yield ReloadUnits()
    yield RemoveJob()


def _stored(job: JobSeen, site: Site) -> Iterator[str]:
    """Yield what the store has for no other job."""
    yield from (
        path
        for path in job.files
        if path.startswith(f"{site.tree.data}/store/") and path.rpartition("/")[2] not in job.shared
    )


def _removals(job: JobSeen, site: Site) -> Iterator[FileChange]:
    eyes = Eyes({}, b"")
    paths = {*ours(own_files(job), site.tree), site.tree.deployment, *_stored(job, site)}
    paths &= job.files.keys()
    yield from (removal(path, job.files[path], eyes) for path in sorted(paths))
