"""The use case `apply`: carry a plan out, and wait until the group has formed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from rlxdeploy.app.circumstances import whoami
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.plan import Planned
from rlxdeploy.app.say import Doing, Say
from rlxdeploy.edge.apply import Carried, Manner, carried_out
from rlxdeploy.edge.record import forget_record, read_record, remember, remember_only, write_record
from rlxdeploy.edge.watch import Watched, Wish, watch
from rlxdeploy.errors import HostError
from rlxdeploy.facts.ranks import ALIVE_S, RankState, state_of
from rlxdeploy.model.plan import HostPlan, Plan, RankRow
from rlxdeploy.model.record import HostRecord, Record
from rlxdeploy.model.step import StopRanks
from rlxdeploy.model.survey import RankSeen, Survey
from rlxdeploy.model.vocabulary import Launch


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of an apply.

    *went* tells whether any host was changed; *failed* are the hosts that were not changed as
    planned; *watched* is how the join ended, None where it was not waited for; *stopped* tells
    that the ranks of a first apply that could not join were stopped again.
    """

    plan: Plan
    went: bool
    failed: Mapping[str, HostError]
    watched: Watched | None = None
    stopped: bool = False

    @property
    def ok(self) -> bool:
        return not self.failed and (self.watched is None or self.watched.ok)


def apply_job(planned: Planned, lab: Lab, say: Say) -> Applied:
    """Carry *planned* out on every host, or on none where one cannot even stage it.

    Failures of hosts and ranks are in the answer; raises RecordError where the record beside the
    inventory cannot be written, before anything is changed.
    """
    plan, survey = planned.plan, planned.compiled.survey
    if plan.empty:
        whole = all(_joined(plan, survey))
        watched = None if whole else join(plan, Survey({}), lab, say)
        return Applied(plan, went=False, failed={}, watched=watched)
    records = _Records.of(planned)
    records.begin()
    with carried_out(
        plan, planned.files, lab.open_session, manner("apply", plan, lab, say)
    ) as carried:
        records.end(carried)
        if not carried.went or carried.outcomes.failed:
            return Applied(plan, carried.went, carried.outcomes.failed)
        watched = join(plan, survey, lab, say)
    first = not any(facts.job.deployed for facts in survey.hosts.values())
    if watched.ok or not first:
        return Applied(plan, went=True, failed={}, watched=watched)
    halted = _halt(planned, lab, say)
    failed = halted.outcomes.failed
    return Applied(plan, went=True, failed=failed, watched=watched, stopped=halted.went)


def manner(verb: str, plan: Plan, lab: Lab, say: Say) -> Manner:
    """Return how a plan is carried out, telling *say* of each host's progress."""
    touched = [name for name, part in plan.hosts.items() if not part.empty]
    steps = sum(len(part.go) for part in plan.hosts.values())
    waiting, gone = dict.fromkeys(touched), list[str]()

    def tell(host: str, what: str) -> None:
        if what == "staged":
            waiting.pop(host, None)
            say(Doing("stage", len(touched) - len(waiting), len(touched), tuple(waiting)))
        else:
            gone.append(host)
        if not waiting:
            say(Doing("change", len(gone), steps))

    return Manner(by=f"{verb} by {whoami()}", forks=lab.forks, tell=tell)


def join(plan: Plan, before: Survey, lab: Lab, say: Say) -> Watched:
    """Wait for the ranks of *plan*, telling of each that joins; *before* is the survey it is of."""
    rows = [row for row in plan.ranks if row.managed]
    waiting = {row.rank: f"rank {row.rank} on {row.host}" for row in rows}

    def tell(row: RankRow, state: RankState, _seen: RankSeen) -> None:
        if state is RankState.READY:
            waiting.pop(row.rank, None)
        say(Doing("join", len(rows) - len(waiting), len(rows), tuple(waiting.values())))

    say(Doing("join", 0, len(rows), tuple(waiting.values())))
    wish = Wish(before=_starts(before))
    return watch(plan, lab.open_session, wish, tell=tell)


def _joined(plan: Plan, survey: Survey) -> Iterator[bool]:
    """Yield for each rank of a group that is left alone whether it has joined, or ended well."""
    seen = {one.rank: one for facts in survey.hosts.values() for one in facts.job.ranks}
    well = {RankState.READY, RankState.FINISHED}
    for row in plan.ranks:
        if row.managed and (one := seen.get(row.rank)) is not None:
            unit, notify = row.launch != Launch.PROCESS, plan.join == "notify"
            yield state_of(one, notify=notify, unit=unit, alive=ALIVE_S) in well


def _starts(survey: Survey) -> Mapping[int, float]:
    return {seen.rank: seen.since for facts in survey.hosts.values() for seen in facts.job.ranks}


def _halt(planned: Planned, lab: Lab, say: Say) -> Carried:
    """Stop what a first apply has started: there is no release to go back to."""
    halt = replace(planned.plan, hosts=dict(_stopping(planned.plan)))
    with carried_out(halt, None, lab.open_session, manner("stop", halt, lab, say)) as carried:
        return carried


def _stopping(plan: Plan) -> Iterator[tuple[str, HostPlan]]:
    for name, part in plan.hosts.items():
        ranks = tuple(row.rank for row in plan.ranks if row.host == name and row.managed)
        if ranks:
            yield name, HostPlan(part.host, part.tree, part.launch, go=(StopRanks(ranks),))


@dataclass(frozen=True, slots=True)
class _Records:
    """What is kept beside the inventory, written before a host is told GO.

    Whatever happens to us then, the next plan knows which hosts may have the job.  *leaving* are
    those that are cleared.
    """

    inventory: Path
    before: Record | None
    after: Record
    contents: Mapping[str, bytes]
    leaving: frozenset[str]

    @classmethod
    def of(cls, planned: Planned) -> Self:
        inventory = Path(planned.compiled.loaded.path)
        shown = (
            file
            for host in planned.files.hosts.values()
            for file in (*host.released, *host.installed)
            if not file.secret
        )
        contents = {file.digest: file.content for file in shown}
        before = read_record(inventory, planned.plan.job)
        leaving = planned.plan.hosts.keys() - planned.compiled.resolution.hosts.keys()
        after = _record(planned, before)
        return cls(inventory, before, after, contents, frozenset(leaving))

    def begin(self) -> None:
        """Write what will be so; raises RecordError."""
        write_record(self.inventory, self.after)
        remember(self.inventory, self.after.job, self.contents)

    def end(self, carried: Carried) -> None:
        """Drop what is out of date; where nothing went, write again what was there before."""
        if carried.went:
            gone = self.leaving & carried.outcomes.done.keys()
            hosts = tuple(one for one in self.after.hosts if one.host.name not in gone)
            write_record(self.inventory, replace(self.after, hosts=hosts))
            remember_only(self.inventory, self.after.job, self.contents)
        elif self.before is None:
            forget_record(self.inventory, self.after.job)
        else:
            write_record(self.inventory, self.before)


def _record(planned: Planned, before: Record | None) -> Record:
    """Return what will be so; a host that left and did not answer is not forgotten."""
    plan = planned.plan
    silent = planned.compiled.survey.failed
    kept = (one for one in (before.hosts if before else ()) if one.host.name in silent)
    hosts = tuple(
        HostRecord(
            part.host,
            part.tree,
            part.launch,
            tuple(seat.rank for seat in planned.compiled.resolution.on(name)),
        )
        for name, part in plan.hosts.items()
    )
    hosts += tuple(one for one in kept if one.host.name not in plan.hosts)
    return Record(plan.deployment, plan.job, plan.release, plan.generation, hosts, plan.ranks)
