"""One host's part of a plan: what changes on it, and the steps that bring it about."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from rlxdeploy.model.files import HostFiles, RemoteFiles
from rlxdeploy.model.plan import Change, HostPlan, UnitAction
from rlxdeploy.model.resolution import Placed, Resolution
from rlxdeploy.model.step import (
    InstallFile,
    MarkDeployment,
    PruneReleases,
    ReleasedFile,
    ReloadUnits,
    RemoveFile,
    StageRelease,
    StartRanks,
    Step,
    StopRanks,
    StoreFile,
    SwitchRelease,
)
from rlxdeploy.model.survey import JobSeen
from rlxdeploy.model.vocabulary import Launch
from rlxdeploy.plan.back import way_back
from rlxdeploy.plan.diff import Eyes, file_changes, is_unit, wanted_files
from rlxdeploy.plan.drift import own_files
from rlxdeploy.plan.epoch import Cause
from rlxdeploy.plan.mark import deployment_mark, same_mark
from rlxdeploy.plan.order import Order


@dataclass(frozen=True)
class Epoch:
    """What the whole group does: all ranks *restart*, for these *causes*, or none does."""

    restart: bool
    causes: tuple[Cause, ...] = ()

    def why(self, rank: int) -> str:
        """Return why *rank* starts: for a reason of its own, or since all do."""
        return "; ".join(self._own.get(rank, ())) or "every restart is one of the whole group"

    @cached_property
    def _own(self) -> Mapping[int, list[str]]:
        own: dict[int, list[str]] = {}
        for cause in self.causes:
            own.setdefault(cause.rank, []).append("it" + cause.why.removeprefix("'"))
        return own


@dataclass(frozen=True, slots=True)
class Aim:
    """What is the same for every host of one plan."""

    resolution: Resolution
    files: RemoteFiles
    order: Order
    epoch: Epoch


def host_plan(placed: Placed, job: JobSeen, aim: Aim) -> HostPlan:
    """Return what brings one host of the group from *job*, as seen, to the files aimed at."""
    part = _Part(placed, job, aim)
    site = (placed.host, placed.tree, placed.launch)
    if not part.touched:
        return HostPlan(*site)
    return HostPlan(
        *site,
        part.changes,
        tuple(part.actions()),
        tuple(part.stage()),
        tuple(part.go()),
        tuple(part.confirm()),
        way_back(job, part.ranks, aim.files.plan, aim.order),
    )


class _Part:
    """The decisions for one host."""

    def __init__(self, placed: Placed, job: JobSeen, aim: Aim) -> None:
        self.placed, self.job = placed, job
        self.files, self.order, self.epoch = aim.files, aim.order, aim.epoch
        self.own: HostFiles = self.files.hosts[placed.host.name]
        self.ranks = tuple(seat.rank for seat in aim.resolution.on(placed.host.name))
        self.mark = deployment_mark(aim.resolution, placed, self.files, self.order)
        eyes = Eyes(self.order.known, self.order.secret)
        wanted = wanted_files(self.own, placed.tree)
        self.changes = tuple(file_changes(wanted, own_files(job), placed.tree, eyes))
        self.differing = {one.path for one in self.changes if one.change is not Change.REMOVED}
        running = {seen.rank for seen in job.ranks if seen.active != "inactive"}
        self.leaving = tuple(sorted(running - set(self.ranks)))
        self.stopping = tuple(sorted(running & set(self.ranks))) if self.epoch.restart else ()

    @property
    def touched(self) -> bool:
        changed = self.changes or self.leaving or self.restages or self.remarks or self.starts
        return bool(changed) or self.job.unconfirmed is not None

    @property
    def restages(self) -> bool:
        """Whether the release on the host is not the one wanted, or not as it should be."""
        current = f"{self.placed.tree.current}/"
        changed = any(one.path.startswith(current) for one in self.changes)
        return self.job.current != self.files.release or changed

    @property
    def remarks(self) -> bool:
        return self.restages or not same_mark(self.job.deployed, self.mark)

    @property
    def starts(self) -> bool:
        """Whether ranks are started, or only enabled or disabled at boot."""
        if not self.ranks:
            return False
        return self.epoch.restart or any(
            seen.enabled != self.order.boot
            for seen in self.job.ranks
            if seen.rank in self.ranks and self.placed.launch != Launch.PROCESS
        )

    def actions(self) -> Iterator[UnitAction]:
        for rank in self.leaving:
            yield UnitAction(rank, "stop", "it is no longer on this host")
        for rank in self.ranks if self.epoch.restart else ():
            verb = "restart" if rank in self.stopping else "start"
            yield UnitAction(rank, verb, self.epoch.why(rank))

    def stage(self) -> Iterator[Step]:
        tree = self.placed.tree
        for file in self.own.stored:
            if tree.stored(file.digest) in self.differing:
                yield StoreFile(file.digest, len(file.content))
        if self.restages:
            yield StageRelease(
                self.files.release,
                tuple(
                    ReleasedFile(one.path, one.digest, len(one.content), one.mode)
                    for one in self.own.released
                ),
            )

    def go(self) -> Iterator[Step]:
        if self.leaving:
            yield StopRanks(self.leaving, disable=True)
        if self.stopping:
            yield StopRanks(self.stopping)
        if self.restages:
            yield SwitchRelease(self.files.release)
        yield from self._installs()
        if self.remarks:
            yield MarkDeployment(self.mark)
        if self.starts:
            yield StartRanks(self.ranks, self.order.boot, self.files.release, self._supervisor())

    def confirm(self) -> Iterator[Step]:
        if self.restages or self.job.unconfirmed is not None:
            yield PruneReleases(self.order.keep)

    def _installs(self) -> Iterator[Step]:
        tree = self.placed.tree
        paths = {one.path for one in self.changes if not one.path.startswith(f"{tree.current}/")}
        key = self.own.key
        for file in (*self.own.installed, *((key,) if key else ())):
            if file.path in paths:
                digest = "" if file is key else file.digest
                yield InstallFile(file.path, digest, len(file.content), file.mode, file.owner)
        for change in self.changes:
            if change.change is Change.REMOVED and change.path in paths:
                yield RemoveFile(change.path)
        if any(is_unit(path, tree) for path in paths):
            yield ReloadUnits()

    def _supervisor(self) -> tuple[str, ...]:
        if self.placed.launch != Launch.PROCESS:
            return ()
        archive = self.placed.tree.stored(self.own.stored[0].digest)
        return supervisor_argv(self.placed.python, archive)


def supervisor_argv(python: str, archive: str) -> tuple[str, ...]:
    """Return the start of the argument vector of a supervisor; *archive* holds the runtime."""
    module = "rlxdeploy.runtime.supervisor"
    return ("/usr/bin/env", f"PYTHONPATH={archive}", python, "-m", module)
