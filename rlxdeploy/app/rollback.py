"""The use case `rollback`: back to a release that the hosts have kept."""

from dataclasses import dataclass, replace
from pathlib import Path

from rlxdeploy.app.apply import Applied, Voice, manner, settled, taken_back
from rlxdeploy.app.circumstances import order_for, sites
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.look import Known, look
from rlxdeploy.app.run import Run
from rlxdeploy.app.say import Say
from rlxdeploy.edge.apply import carried_out
from rlxdeploy.edge.record import read_record, write_record
from rlxdeploy.model.plan import Plan, RankRow
from rlxdeploy.model.record import HostRecord
from rlxdeploy.plan.rollback import plan_rollback


@dataclass(frozen=True, slots=True)
class Rollback:
    """A plan that goes back; *path* is the inventory's."""

    known: Known
    plan: Plan

    @property
    def path(self) -> Path:
        return Path(self.known.loaded.path)

    @property
    def at_once(self) -> bool:
        """Whether what nobody has confirmed is taken back, as it would be by itself."""
        return not any(part.go for part in self.plan.hosts.values())


def rolling_back(
    inventory: Path, release: str, lab: Lab, say: Say, *, join_timeout: float | None = None
) -> Rollback:
    """Plan to go back to *release*, "" for the one before; raises CompileError with what there is.

    Raises an ExceptionGroup where a host that has the job does not answer: all go back, or none.
    """
    known = look(inventory, lab, say)
    if known.survey.failed:
        silent = [*map(known.survey.error_of, known.survey.failed)]
        raise ExceptionGroup("all hosts go back, or none", silent)
    order = order_for(known.loaded, known.survey, join_timeout=join_timeout)
    now = known.record.ranks if known.record else ()
    plan = plan_rollback(
        sites(known.loaded, known.survey),
        known.survey,
        order,
        release,
        unmanaged=frozenset(row.rank for row in now if not row.managed),
    )
    rows = known.record.rows_of(plan.release) if known.record else ()
    then = {(row.rank, row.host): row for row in rows}
    return Rollback(known, replace(plan, ranks=tuple(_as_then(row, then) for row in plan.ranks)))


def _as_then(row: RankRow, then: dict[tuple[int, str], RankRow]) -> RankRow:
    was = then.get((row.rank, row.host))
    if was is None:
        return row
    return replace(row, node=was.node, device=was.device, address=was.address, layers=was.layers)


def roll_back(wanted: Rollback, lab: Lab, say: Say, run: Run) -> Applied:
    """Carry *wanted* out and wait until the group has formed; what fails is taken back."""
    plan, survey = wanted.plan, wanted.known.survey
    how = manner("rollback", plan, lab, say, run)
    with carried_out(plan, None, lab.open_session, how) as carried:
        voice = Voice(lab, say, run)
        settle = taken_back if wanted.at_once else settled
        applied = settle(plan, survey, carried, voice)
        # As long as the hosts are locked nobody else writes that down.
        if applied.ok:
            _record(wanted)
    run.end("done" if applied.ok else "failed", applied.failed_hosts)
    return applied


def _record(wanted: Rollback) -> None:
    plan, record = wanted.plan, read_record(wanted.path, wanted.plan.job)
    if record is None or wanted.at_once:
        return
    found = {one.host.name: one.found for one in record.hosts}
    hosts = tuple(
        HostRecord(
            part.host,
            part.tree,
            part.launch,
            tuple(row.rank for row in plan.ranks if row.host == name),
            found.get(name),
        )
        for name, part in plan.hosts.items()
        if not part.confirm
    )
    unmanaged = tuple(row for row in record.ranks if not row.managed)
    rows = tuple(sorted((*plan.ranks, *unmanaged), key=lambda row: row.rank))
    fresh = replace(
        record,
        release=plan.release,
        generation=max(record.generation, plan.generation),
        hosts=hosts,
        ranks=rows,
        former=record.behind(plan.release),
    )
    write_record(wanted.path, fresh)
