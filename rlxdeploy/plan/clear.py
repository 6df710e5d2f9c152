"""What leaves nothing of a job on a host."""

from collections.abc import Iterator

from rlxdeploy.model.plan import FileChange, HostPlan, Site, UnitAction
from rlxdeploy.model.step import ReloadUnits, RemoveFile, RemoveJob, Step, StopRanks
from rlxdeploy.model.survey import JobSeen
from rlxdeploy.plan.diff import Eyes, is_unit, ours, removal
from rlxdeploy.plan.epoch import RUNNING


def clearing(site: Site, job: JobSeen, why: str) -> HostPlan:
    """Return what leaves nothing of the job on a host; empty where there is nothing."""
    seen = tuple(one for one in job.ranks if one.active != "inactive" or one.enabled)
    ranks = tuple(one.rank for one in seen)
    units = [path for path in job.files if is_unit(path, site.tree)]
    if not (ranks or job.files or job.deployed or job.releases):
        return HostPlan(site.host, site.tree, site.launch)
    go: list[Step] = [StopRanks(ranks, disable=True)] if ranks else []
    go += [RemoveFile(path) for path in units]
    go += [ReloadUnits()] if units else []
    running = [one.rank for one in seen if one.active in RUNNING]
    return HostPlan(
        site.host,
        site.tree,
        site.launch,
        changes=tuple(_removals(job, site)),
        actions=tuple(UnitAction(rank, "stop", why) for rank in running),
        go=(*go, RemoveJob()),
    )


def _removals(job: JobSeen, site: Site) -> Iterator[FileChange]:
    eyes = Eyes({}, b"")
    paths = {*ours(job.files, site.tree), site.tree.deployment} & job.files.keys()
    yield from (removal(path, job.files[path], eyes) for path in sorted(paths))
