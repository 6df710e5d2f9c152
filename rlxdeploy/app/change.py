"""The use cases that change what runs and no file of the group: stop, restart, destroy."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rlxdeploy.app.apply import Applied, begin, join, manner
from rlxdeploy.app.circumstances import order_for, sites
from rlxdeploy.app.compile import Request, compile_job
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.lastwords import kept_logs
from rlxdeploy.app.look import Known, look
from rlxdeploy.app.run import Run
from rlxdeploy.app.say import Say
from rlxdeploy.edge.apply import carried_out
from rlxdeploy.edge.jobkey import forget_key
from rlxdeploy.edge.record import forget_record
from rlxdeploy.edge.remembered import forget_facts
from rlxdeploy.errors import Finding, HostError, Severity
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.plan import Asked, Plan
from rlxdeploy.model.scope import ALL, Scope
from rlxdeploy.model.survey import Survey
from rlxdeploy.plan.epoch import named
from rlxdeploy.plan.limit import whole_hosts
from rlxdeploy.plan.others import plan_destroy, plan_restart, plan_stop


@dataclass(frozen=True, slots=True)
class Change:
    """A plan of stop, restart or destroy; *unasked* are the hosts that did not answer.

    *whole* tells that everybody is meant.
    """

    verb: str
    loaded: Loaded
    survey: Survey
    plan: Plan
    whole: bool = True

    @property
    def unasked(self) -> Mapping[str, HostError]:
        return self.survey.errors


@dataclass(frozen=True, slots=True)
class Whom:
    """Whom a stop or a destroy is for.

    *adopt* takes over what belongs to another deployment; *max_fail* hosts may fail, and the others
    are changed all the same.
    """

    scope: Scope = ALL
    adopt: bool = False
    max_fail: int = 0


EVERYBODY = Whom()


def stopping(inventory: Path, lab: Lab, say: Say, whom: Whom = EVERYBODY) -> Change:
    """Plan to stop every rank that is meant, and leave its files; raises UsageError for nobody."""
    known = look(inventory, lab, say, whom.scope)
    order = order_for(known.loaded, known.survey, adopt=whom.adopt)
    where = sites(known.loaded, known.survey)
    plan = plan_stop(known.loaded.job, where, known.survey, order, known.ranks)
    return _change("stop", known, plan, whom)


def destroying(inventory: Path, lab: Lab, say: Say, whom: Whom = EVERYBODY) -> Change:
    """Plan to leave nothing of the job on any host that is meant; raises UsageError for nobody."""
    known = look(inventory, lab, say, whom.scope)
    order = order_for(known.loaded, known.survey, adopt=whom.adopt)
    where = sites(known.loaded, known.survey)
    plan = plan_destroy(known.loaded.job, where, known.survey, order)
    if known.chosen is not None:
        whole_hosts(plan, known.members, known.chosen)
    return _change("destroy", known, plan, whom)


def _change(verb: str, known: Known, plan: Plan, whom: Whom) -> Change:
    told = replace(plan, notices=_bereft(known), asked=Asked(max_fail=whom.max_fail))
    return Change(verb, known.loaded, known.survey, told, whole=known.chosen is None)


def _bereft(known: Known) -> tuple[Finding, ...]:
    """Say who is left behind: a group without some of its ranks is none."""
    if known.chosen is None:
        return ()
    left = {one.rank for one in known.members if one not in known.chosen} - {None}
    ranks = [rank for rank in left if rank is not None]
    if not ranks:
        return ()
    what = f"{named(ranks)}: left as they are, and no group without the others"
    return (Finding(what, severity=Severity.NOTICE),)


def restarting(inventory: Path, lab: Lab, say: Say, *, join_timeout: float | None) -> Change:
    """Plan to start the whole group anew with the files that are deployed."""
    compiled = compile_job(Request(inventory), lab, say)
    order = order_for(compiled.loaded, compiled.survey, join_timeout=join_timeout)
    deployed = [facts.job.deployed for facts in compiled.survey.hosts.values()]
    generation = max((one.generation for one in deployed if one), default=0)
    files = compiled.files(generation)
    plan = plan_restart(compiled.resolution, files, compiled.survey, order)
    return Change("restart", compiled.loaded, compiled.survey, plan)


def change(wanted: Change, lab: Lab, say: Say, run: Run | None = None) -> Applied:
    """Carry *wanted* out; a restart is then waited for, a destroyed job forgotten."""
    plan = wanted.plan
    if plan.empty:
        _forget(wanted)
        return Applied(plan, went=False, failed={})
    run = run or begin(wanted.verb, plan, Path(wanted.loaded.path))
    how = manner(wanted.verb, plan, lab, say, run)
    with carried_out(plan, None, lab.open_session, how) as carried:
        failed = carried.outcomes.failed
        if failed or wanted.verb != "restart":
            watched = None
        else:
            watched = join(plan, wanted.survey, lab, say)
        # As long as the hosts are locked no apply has written down anything else.
        if not failed:
            _forget(wanted)
    applied = Applied(plan, carried.went, failed, watched)
    run.end("done" if applied.ok else "failed", applied.failed_hosts | {*wanted.unasked})
    return applied


def _forget(wanted: Change) -> None:
    if wanted.verb == "destroy" and wanted.whole and not wanted.unasked:
        path, job = Path(wanted.loaded.path), wanted.loaded.job
        forget_record(path, job)
        forget_key(path, job)
        forget_facts(path, job)
        shutil.rmtree(kept_logs(path, job), ignore_errors=True)
