"""Which layers each node gets: what `[placement]` asks, answered from the survey.

Free memory is never twice the same, least of all while the job itself runs.  So what was settled
stays as it is deployed for as long as the same is asked of the same nodes.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlxdeploy.model.addresses import parse_address
from rlxdeploy.model.names import parse_layers
from rlxdeploy.model.vocabulary import Policy
from rlxdeploy.resolve.allot import Allotted
from rlxdeploy.resolve.entries import Entry
from rlxdeploy.resolve.group import Group
from rlxdeploy.resolve.placement import DoesNotFit, Stage, counts, ranges
from rlxdeploy.resolve.report import Report
from rlxdeploy.resolve.stages import GB, Bearer, bearers, model, stages


@dataclass(frozen=True, slots=True)
class Layers:
    """The ranges of the nodes that get layers, by their index, and why.

    *mark* is what a deployment remembers: what was asked, as a digest, and the answer.
    """

    ranges: Mapping[int, str] = field(default_factory=dict)
    why: Mapping[int, str] = field(default_factory=dict)
    mark: str = ""


def layer_shares(
    members: Group, allotted: Mapping[int, Allotted], report: Report, planned: str = ""
) -> Layers:
    """Return the layers of every active node, none where `[placement]` computes none.

    *planned* is the mark of a saved plan, "" without one.  What is missing or does not fit is an
    error in *report*; standbys are told with their principals' layers.
    """
    placement = report.loaded.inventory.placement
    if placement.policy is Policy.MANUAL or placement.n_layers is None:
        return Layers()
    nodes = bearers(members, allotted, report.loaded.told)
    asked = _asked(nodes, report)
    if (kept := _kept(nodes, asked, planned)) is not None:
        asked, *settled = kept.mark.split(" ")
        why = [f"{kept.since}: the same is asked of the same nodes"] * len(nodes)
    elif brought := stages(nodes, report):
        settled, why = _settled(brought, report), [_why(stage, report) for stage in brought]
    else:
        return Layers()
    indices = [node.entry.index for node in nodes]
    shares = dict(zip(indices, settled, strict=False))
    _tell_standbys(members, nodes, shares, report)
    return Layers(shares, dict(zip(indices, why, strict=True)), " ".join((asked, *settled)))


def _asked(nodes: Sequence[Bearer], report: Report) -> str:
    """Return a digest of all that the inventory says about the shares, and of whom it says it.

    Where speeds count, a letter a node follows: m if it was measured, else u.
    """
    inventory = report.loaded.inventory
    whom = [
        (who.name, who.node.device, who.node.max_ram_gb, [one.rank for one in node.stands])
        for node in nodes
        for who in (node.entry.principal or node.entry,)
    ]
    placement = inventory.placement.model_dump(mode="json")
    question = json.dumps([placement, inventory.reserve_ram_gb, whom], sort_keys=True)
    digest = hashlib.sha256(question.encode()).hexdigest()[:16]
    if inventory.placement.policy is Policy.RAM_BALANCED:
        return digest
    return f"{digest}:{''.join('m' if node.gflops else 'u' for node in nodes)}"


@dataclass(frozen=True, slots=True)
class _Kept:
    """A mark that answers what is asked now, and since when it does."""

    mark: str
    since: str


def _kept(nodes: Sequence[Bearer], asked: str, planned: str) -> _Kept | None:
    """Return what a saved plan or else the hosts have settled, if it answers what is asked now."""
    facts = (stand.facts for node in nodes for stand in node.stands)
    marks = [one.job.deployed for one in facts if one and one.job.deployed]
    latest = max(marks, key=lambda one: one.generation, default=None)
    candidates = (
        _Kept(planned, "as planned"),
        _Kept(latest.placement if latest else "", "as deployed"),
    )
    return next((one for one in candidates if _answers(one.mark, asked, len(nodes))), None)


def _answers(mark: str, asked: str, nodes: int) -> bool:
    """Tell whether *mark* is of the same question, and nobody was measured since."""
    then, *ranges = mark.split(" ")
    (was, _, before), (question, _, now) = then.partition(":"), asked.partition(":")
    anew = any(pair == ("u", "m") for pair in zip(before, now, strict=False))
    return was == question and len(ranges) == nodes and not anew


def _settled(brought: Sequence[Stage], report: Report) -> list[str]:
    """Return the ranges of the stages; none and an error in *report* if they are too small."""
    placement = report.loaded.inventory.placement
    try:
        shared = counts(brought, model(report), placement.policy, placement.objective.optimize)
    except DoesNotFit as error:
        remedy = "add nodes, or lower reserve_ram_gb"
        report.error(("placement", "n_layers"), str(error), remedy)
        return []
    return ranges(shared)


def _why(stage: Stage, report: Report) -> str:
    placement = report.loaded.inventory.placement
    by = f"{stage.budget / GB:.1f} GB"
    if placement.policy is not Policy.RAM_BALANCED:
        by = f"{stage.gflops:.0f} GFLOP/s"
    origin = report.loaded.origin(("placement", "policy"))
    return f"{placement.policy} of {placement.n_layers} layers, by {by}: {origin}"


def _tell_standbys(
    members: Group, nodes: Sequence[Bearer], shares: Mapping[int, str], report: Report
) -> None:
    """Say which layers each standby holds: its principal's, or else the largest nobody covers."""
    free = list(nodes)
    for entry in members.holders if shares else ():
        mirrored = _mirrored(entry, nodes, free, shares)
        if mirrored is None:
            continue
        if mirrored in free:
            free.remove(mirrored)
        what = f"{entry.name} stands by with layers {shares[mirrored.entry.index]}"
        report.notice(entry.key("role"), f"{what}, those of {mirrored.entry.name}")


def _mirrored(
    entry: Entry, nodes: Sequence[Bearer], free: Sequence[Bearer], shares: Mapping[int, str]
) -> Bearer | None:
    if (written := entry.node.standby_for) is not None:
        wanted = parse_address(written)
        return next((one for one in nodes if one.entry.addr == wanted), None)

    def size(node: Bearer) -> tuple[int, int]:
        first, end = parse_layers(shares[node.entry.index])
        return end - first, nodes.index(node)

    return max(free or nodes, key=size)
