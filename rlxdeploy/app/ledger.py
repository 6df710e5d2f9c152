"""What an apply keeps beside the inventory, written by nobody else who needs one of its hosts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from rlxdeploy.app.plan import Planned
from rlxdeploy.app.run import Run
from rlxdeploy.edge.record import forget_record, read_record, remember, remember_only, write_record
from rlxdeploy.edge.remembered import remember_facts
from rlxdeploy.model.record import HostRecord, Record
from rlxdeploy.model.survey import HostFacts


@dataclass(slots=True)
class Ledger:
    """Writes down what a run is about to do, and at its end what has come of that.

    Entered once the hosts are locked and before any is told GO: whatever happens to us then, the
    next plan knows which hosts may have the job.  Left before the locks are.  So of two runs that
    need one and the same host the second finds what the first has left, and one that is refused
    writes nothing.

    *becomes* says what will be so, given what is written; *contents* is kept for diffs, *leaving*
    are the hosts that are cleared, *facts* is what the hosts have said of themselves.  Entering and
    leaving raise RecordError.
    """

    run: Run
    becomes: Callable[[Record | None], Record]
    contents: Mapping[str, bytes]
    leaving: frozenset[str]
    facts: Mapping[str, HostFacts]
    _before: Record | None = None
    _after: Record | None = None

    @property
    def _inventory(self) -> Path:
        return self.run.inventory

    def __enter__(self) -> None:
        self.run.go()
        self._before = read_record(self._inventory, self.run.plan.job)
        self._after = self.becomes(self._before)
        write_record(self._inventory, self._after)
        remember(self._inventory, self._after.job, self.contents)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._after is not None  # noqa: S101 - entered before
        if self.run.changed:
            self._keep(self._after)
        elif read_record(self._inventory, self._after.job) == self._after:
            # Otherwise a run that needs none of our hosts has come between, and it knows better.
            self._take_back(self._after)

    def _keep(self, after: Record) -> None:
        """Write what is so now, without the hosts that have been cleared for good."""
        gone = {name for name in self.leaving if self.run.is_settled(name)}
        hosts = tuple(one for one in after.hosts if one.host.name not in gone)
        self._write(replace(after, hosts=hosts))
        remember_only(self._inventory, after.job, self.contents)
        remember_facts(self._inventory, after.job, self.facts)

    def _take_back(self, after: Record) -> None:
        if self._before is None:
            forget_record(self._inventory, after.job)
        else:
            self._write(self._before)

    def _write(self, record: Record) -> None:
        # What was tried has been, by whomever: its number does not come again.
        written = read_record(self._inventory, record.job)
        highest = max(record.generation, written.generation if written else 0)
        write_record(self._inventory, replace(record, generation=highest))


def ledger(planned: Planned, run: Run) -> Ledger:
    """Return the ledger of *run*, which carries *planned* out."""
    files = (
        file for host in planned.files.hosts.values() for file in (*host.released, *host.installed)
    )
    contents = {one.digest: one.public for one in files if one.public is not None}
    group = planned.compiled.resolution.hosts
    left = ((name, part) for name, part in planned.plan.hosts.items() if name not in group)
    # One that `--limit` leaves as it is has to be found again.
    leaving = frozenset(name for name, part in left if not part.empty)
    facts = planned.compiled.survey.hosts
    return Ledger(run, lambda before: _record(planned, before), contents, leaving, facts)


def _record(planned: Planned, before: Record | None) -> Record:
    """Return what will be so; a host that left and did not answer is not forgotten."""
    plan = planned.plan
    silent = planned.compiled.survey.failed
    kept = (one for one in (before.hosts if before else ()) if one.host.name in silent)
    found = {one.ssh: replace(one, ranks=()) for one in planned.compiled.loaded.found.values()}
    hosts = tuple(
        HostRecord(
            part.host,
            part.tree,
            part.launch,
            tuple(seat.rank for seat in planned.compiled.resolution.on(name)),
            found.get(name),
        )
        for name, part in plan.hosts.items()
    )
    hosts += tuple(one for one in kept if one.host.name not in plan.hosts)
    former = before.behind(plan.release) if before else {}
    # Another run may have tried a higher number since this one was planned.
    highest = max(plan.generation, before.generation if before else 0)
    return Record(plan.deployment, plan.job, plan.release, highest, hosts, plan.ranks, former)
