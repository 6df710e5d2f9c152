"""Which rank each slot may claim: its pin, or the number its machine has been deployed with."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rlxdeploy.model.survey import Survey
from rlxdeploy.resolve.entries import Entry
from rlxdeploy.resolve.promote import Promotion
from rlxdeploy.resolve.ranks import Claim
from rlxdeploy.resolve.report import Report


@dataclass(frozen=True, slots=True)
class Deployed:
    """The ranks that machines have now; *same* maps further names of a machine to its own."""

    survey: Survey
    promotion: Promotion
    same: Mapping[str, str]

    def on(self, machine: str) -> tuple[int, ...]:
        """Return the ranks of *machine* in ascending order: as it says, or else as recorded."""
        facts = self.survey.hosts.get(machine)
        if facts is None:
            return tuple(sorted(self.promotion.recorded.get(machine, ())))
        return tuple(sorted(facts.job.deployed.ranks)) if facts.job.deployed else ()

    def machine_of(self, entry: Entry) -> str:
        """Return the machine of a managed node."""
        return self.same.get(entry.host.name, entry.host.name)


def claims(
    slots: Sequence[tuple[Entry, int]],
    machines: Mapping[int, str],
    deployed: Deployed,
    report: Report,
) -> list[Claim]:
    """Return the claim of each slot, in their order; *machines* are those of the nodes."""
    held: dict[str, Iterator[int]] = {}
    found = []
    for entry, slot in slots:
        pin = None if entry.node.rank is None else entry.node.rank + slot
        if pin is not None and pin >= len(slots):
            report.error(entry.key("rank"), f"rank {pin} does not exist among {len(slots)} ranks")
            pin = None
        holder = _holder(entry, slots, machines, deployed)
        ranks = held.setdefault(holder, iter(deployed.on(holder) if entry.node.managed else ()))
        found.append(Claim(machines[entry.index], pin, next(ranks, None)))
    return found


def reason(entry: Entry, claim: Claim, rank: int, report: Report) -> str:
    """Return why the slot with *claim* has got *rank*."""
    if claim.pinned is not None:
        pinned_by = entry.principal or entry
        return f"pinned: {report.loaded.origin(pinned_by.key('rank'))}"
    if entry.principal is not None and claim.held in (None, rank):
        return f"promoted: that of {entry.principal.name}"
    if claim.held is None:
        return "in the order of the file"
    if claim.held == rank:
        return f"as deployed: deployment.json on {claim.group}"
    return f"rank {claim.held} moved to fill a hole"


def _holder(
    entry: Entry,
    slots: Sequence[tuple[Entry, int]],
    machines: Mapping[int, str],
    deployed: Deployed,
) -> str:
    """Return the machine whose deployed ranks count for *entry*.

    For a promoted standby that is its principal's, until its own machine has more ranks than its
    other nodes account for: then it has taken over already.
    """
    own = machines[entry.index]
    if entry.principal is None:
        return own
    others = sum(machines[one.index] == own for one, _ in slots if one.principal is None)
    return own if len(deployed.on(own)) > others else deployed.machine_of(entry.principal)
