"""The use case `apply`: carry a plan out, and wait until the group has formed."""

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlxdeploy.app.circumstances import GRACE_S, whoami
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.lastwords import keep_logs
from rlxdeploy.app.ledger import ledger
from rlxdeploy.app.plan import Planned
from rlxdeploy.app.preflight import checked
from rlxdeploy.app.run import MILESTONES, HostState, Run
from rlxdeploy.app.say import Doing, Say
from rlxdeploy.edge.apply import Carried, Manner, Patience, carried_out
from rlxdeploy.edge.jobkey import make_key
from rlxdeploy.edge.watch import Watched, Wish, watch
from rlxdeploy.errors import HostError, Locked
from rlxdeploy.facts.ranks import ALIVE_S, RankState, state_of
from rlxdeploy.facts.views import blindness, is_proven
from rlxdeploy.model.files import RemoteFiles
from rlxdeploy.model.plan import Plan, RankRow
from rlxdeploy.model.preflight import Matrix
from rlxdeploy.model.survey import RankSeen, Survey
from rlxdeploy.model.vocabulary import Launch
from rlxdeploy.plan.mark import mark_before, readiness
from rlxdeploy.render.key import needs_key, with_key


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of an apply.

    *went* tells whether any host was changed; *failed* are the hosts that were not changed as
    planned; *watched* is how the join ended, None where it was not waited for.  *back* is what each
    host has come to where the hosts were told to go back, and *again* how the group that was there
    before has formed, None where there was none; *kept* tells where the logs of those are that are
    no longer on their hosts.  *preflight* is what came of trying the links,
    None where nobody did.
    """

    plan: Plan
    went: bool
    failed: Mapping[str, HostError]
    watched: Watched | None = None
    back: Mapping[str, HostState] = field(default_factory=dict)
    again: Watched | None = None
    kept: tuple[str, ...] = ()
    preflight: Matrix | None = None

    @property
    def ok(self) -> bool:
        joined = self.watched is None or self.watched.ok
        return not self.failed and joined and self.can_form

    @property
    def can_form(self) -> bool:
        """Whether no preflight has shown that the group cannot form."""
        return self.preflight is None or self.preflight.ok

    @property
    def failed_hosts(self) -> frozenset[str]:
        """The hosts to look at: those that failed, and those of ranks that did."""
        blamed = self.watched.blamed if self.watched else ()
        return frozenset(self.failed) | {one.host for one in blamed}

    @property
    def unproven(self) -> tuple[RankRow, ...]:
        """The ranks that run, and of which it is not known whether they see their devices."""
        seen = self.watched.ranks if self.watched else {}
        return tuple(
            row
            for row in self.plan.ranks
            if (one := seen.get(row.rank)) and one.ready and not is_proven(row.device, one)
        )


def apply_job(
    planned: Planned, lab: Lab, say: Say, run: Run | None = None, *, preflight: bool = True
) -> Applied:
    """Carry *planned* out on every host, or on none: one that fails takes all of them back.

    With *preflight* every link is tried first, and one that fails leaves all hosts as they are.
    Failures of hosts and ranks are in the answer; raises RecordError where the record, the journal
    or the job's key beside the inventory cannot be written.
    """
    plan, survey = planned.plan, planned.compiled.survey
    if plan.empty and plan.unasked:
        return Applied(plan, went=False, failed=planned.failed)
    if plan.empty:
        whole = all(_joined(plan, survey))
        watched = None if whole else join(plan, Survey({}), lab, say)
        return Applied(plan, went=False, failed=planned.failed, watched=watched)
    run = run or begin("apply", plan, Path(planned.compiled.loaded.path))
    try:
        matrix = checked(planned, lab, say, run) if preflight else None
    except Locked as error:
        failed = {**planned.failed, error.host: error}
        run.end("failed", failed)
        return Applied(plan, went=False, failed=failed)
    if matrix and not matrix.ok:
        run.end("failed", planned.failed)
        return Applied(plan, went=False, failed=planned.failed, preflight=matrix)
    how = replace(manner("apply", plan, lab, say, run), ledger=ledger(planned, run))
    with carried_out(plan, _keyed(planned), lab.open_session, how) as carried:
        applied = settled(plan, survey, carried, Voice(lab, say, run))
    failed = {**planned.failed, **applied.failed}
    applied = replace(applied, failed=failed, preflight=matrix)
    run.end("done" if applied.ok else "failed", applied.failed_hosts)
    return applied


def _keyed(planned: Planned) -> RemoteFiles:
    """Return the files with the job's key in them, made now where a plan only foresaw it."""
    files, loaded = planned.files, planned.compiled.loaded
    return with_key(files, make_key(Path(loaded.path), loaded.job)) if needs_key(files) else files


def begin(verb: str, plan: Plan, inventory: Path) -> Run:
    """Return a run of *verb*, written down beside *inventory*; raises RecordError."""
    return Run.begin(verb, plan, inventory, _by(verb))


@dataclass(frozen=True, slots=True)
class Voice:
    """What a wait needs: how hosts are reached, who is told, and where it is written down."""

    lab: Lab
    say: Say
    run: Run


def settled(plan: Plan, survey: Survey, carried: Carried, voice: Voice) -> Applied:
    """Wait for the ranks, then have every host stay, or go back where one or its ranks failed."""
    failed = carried.outcomes.failed
    if not carried.went:
        return Applied(plan, went=False, failed=failed)
    watched = None
    if plan.unasked and carried.missed.issuperset(failed):
        unsure = {name: _stays(error) for name, error in carried.confirm().failed.items()}
        return Applied(plan, went=True, failed={**failed, **unsure})
    if carried.missed.issuperset(failed):
        voice.run.stage("join")
        watched = join(plan, survey, voice.lab, voice.say)
        voice.run.stage("joined" if watched.ok else "not joined", waited=round(watched.waited, 3))
    if watched and watched.ok:
        unsure = {name: _stays(error) for name, error in carried.confirm().failed.items()}
        return Applied(plan, went=True, failed={**failed, **unsure}, watched=watched)
    return _gone_back(
        Applied(plan, went=True, failed=failed, watched=watched), survey, carried, voice
    )


def _stays(error: HostError) -> HostError:
    remedy = "its ranks are up, so it stays by itself; apply again to have it tidied"
    return HostError(error.host, "confirm", error.why, remedy)


def _gone_back(applied: Applied, survey: Survey, carried: Carried, voice: Voice) -> Applied:
    """Tell every host to go back, and wait until the group that was there before has formed."""
    back = taken_back(applied.plan, survey, carried, voice, applied.watched)
    failed = {**back.failed, **applied.failed}
    return replace(applied, failed=failed, back=back.back, again=back.watched, kept=back.kept)


def taken_back(
    plan: Plan, survey: Survey, carried: Carried, voice: Voice, last: Watched | None = None
) -> Applied:
    """Tell every host to go back, and wait for what it started; *last* is how ranks were seen."""
    if not carried.went:
        return Applied(plan, went=False, failed=carried.outcomes.failed)
    kept = keep_logs(plan, voice.run.inventory, voice.lab)
    voice.run.stage("go back")
    told = carried.revert()
    states = dict(voice.run.states())
    for name, back in told.done.items():
        words = "gone back" if back.release else "cleared"
        states[name] = HostState(back.release, back.ranks, words)
    for name, error in told.failed.items():
        states[name] = replace(states[name], state=f"{states[name].state} ({error.why})")
    before = dict(_starts(plan, survey))
    before |= {rank: seen.since for rank, seen in last.ranks.items()} if last else {}
    rows = [_again(plan, name, rank) for name, back in told.done.items() for rank in back.ranks]
    watched = None
    if rows:
        ready = readiness((mark_before(one.job) for one in survey.hosts.values()), plan.join)
        former = replace(plan, join=ready, ranks=tuple(sorted(rows, key=lambda row: row.rank)))
        watched = _join(former, before, voice.lab, voice.say)
        voice.run.stage("joined again" if watched.ok else "not joined again")
    return Applied(plan, went=True, failed=told.failed, watched=watched, back=states, kept=kept)


def _again(plan: Plan, host: str, rank: int) -> RankRow:
    row = next((row for row in plan.ranks if row.rank == rank and row.host == host), None)
    return row or RankRow(rank, host, host, "", "", plan.hosts[host].launch, "start")


def manner(verb: str, plan: Plan, lab: Lab, say: Say, run: Run) -> Manner:
    """Return how a plan is carried out, telling *say* and *run* of each host's progress."""
    touched = [name for name, part in plan.hosts.items() if not part.empty]
    steps = sum(len(part.go) + len(part.confirm) for part in plan.hosts.values())
    waiting, gone = dict.fromkeys(touched), list[str]()

    def tell(host: str, what: str) -> None:
        run.heard(host, what)
        if what == "staged":
            waiting.pop(host, None)
            say(Doing("stage", len(touched) - len(waiting), len(touched), tuple(waiting)))
        elif what not in MILESTONES:
            gone.append(host)
        if not waiting:
            say(Doing("change", len(gone), steps))

    most = plan.asked.max_fail
    # Hosts stay locked for as long as their ranks may take to join.
    patience = Patience(hold=max(Patience().hold, plan.join_timeout + GRACE_S))
    spare = _spare(verb, plan) if most else ()
    return Manner(_by(verb), lab.forks, most, spare, patience, tell, run.going())


def _spare(verb: str, plan: Plan) -> frozenset[str]:
    """Return the hosts without which the others can go on: a group starts as a whole."""
    alone = verb in ("stop", "destroy")
    return frozenset(name for name, part in plan.hosts.items() if alone or not part.actions)


def _by(verb: str) -> str:
    return f"{verb} by {whoami()}@{socket.gethostname()}"


def join(plan: Plan, before: Survey, lab: Lab, say: Say) -> Watched:
    """Wait for the ranks of *plan*, telling of each that joins; *before* is the survey it is of."""
    return _join(plan, _starts(plan, before), lab, say)


def _join(plan: Plan, before: Mapping[int, float], lab: Lab, say: Say) -> Watched:
    rows = [row for row in plan.ranks if row.managed]
    waiting = {row.rank: f"rank {row.rank} on {row.host}" for row in rows}

    def tell(row: RankRow, state: RankState, _seen: RankSeen) -> None:
        if state is RankState.READY:
            waiting.pop(row.rank, None)
        say(Doing("join", len(rows) - len(waiting), len(rows), tuple(waiting.values())))

    say(Doing("join", 0, len(rows), tuple(waiting.values())))
    return watch(plan, lab.open_session, Wish(before=before), tell=tell)


def _joined(plan: Plan, survey: Survey) -> Iterator[bool]:
    """Yield for each rank of a group that is left alone whether it has joined, or ended well."""
    seen = {one.rank: one for facts in survey.hosts.values() for one in facts.job.ranks}
    well = {RankState.READY, RankState.FINISHED}
    for row in plan.ranks:
        if row.managed and (one := seen.get(row.rank)) is not None:
            unit, notify = row.launch != Launch.PROCESS, plan.join == "notify"
            state = state_of(one, notify=notify, unit=unit, alive=ALIVE_S)
            yield state in well and not (one.ready and blindness(row.device, one))


def _starts(plan: Plan, survey: Survey) -> Mapping[int, float]:
    """Return when each rank that is to start anew was started before."""
    kept = {row.rank for row in plan.ranks if row.action == "keep"}
    return {
        seen.rank: seen.since
        for facts in survey.hosts.values()
        for seen in facts.job.ranks
        if seen.rank not in kept
    }
