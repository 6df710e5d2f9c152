"""A plan as lines a person reads; the command line colours and prints them."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rlxdeploy.model.plan import Change, FileChange, HostPlan, Plan, RankRow, UnitAction
from rlxdeploy.plan.epoch import named
from rlxdeploy.plan.preflight import is_sampled


class Tone(StrEnum):
    """What a line is, for whoever colours it."""

    PLAIN = "plain"
    HEAD = "head"
    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"
    QUIET = "quiet"
    NOTICE = "notice"


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its line break."""

    text: str
    tone: Tone = Tone.PLAIN


_MARKS = {Change.CREATED: "+", Change.CHANGED: "~", Change.REMOVED: "-"}
_PLURALS = {"it is": "they are", "it does": "they do", "its": "their"}
_DIFF_TONES = {"+": Tone.CREATED, "-": Tone.REMOVED, "@": Tone.QUIET}
_COLUMNS = ("rank", "node", "host", "device", "address", "layers", "launch", "action")


def plan_lines(plan: Plan, diffs: Collection[Change] = tuple(Change)) -> Iterator[Line]:
    """Yield the whole plan: the group, why it starts, who is where, and each host's part.

    *diffs* are the kinds of change whose text is shown below the file.
    """
    hosts = sum(1 for part in plan.hosts.values() if part.launch)
    topology = f" in a {plan.topology}" if plan.topology else ""
    where = f"{_count(plan.world, 'rank')}{topology} on {_count(hosts, 'host')}"
    where += f", without {', '.join(plan.absent)}" if plan.absent else ""
    yield Line(f"{plan.job}: {where}", Tone.HEAD)
    yield from (Line(f"  {line}") for line in plan.why)
    if plan.preflight:
        sampled = is_sampled(plan.world, plan.topology)
        tried = "a sample of the links between ranks" if sampled else "every link between ranks"
        yield Line(f"  {tried} is tried before anything is changed", Tone.QUIET)
    if plan.join == "exec" and any(row.action in ("start", "restart") for row in plan.ranks):
        yield Line("  the ranks will be started, joining not proven: ready is exec", Tone.QUIET)
    if plan.ranks:
        yield Line("")
        yield from _table(plan.ranks)
    if plan.drift:
        yield Line("")
        yield Line("drift: not as the last apply left it", Tone.HEAD)
        yield from (Line(f"  {one}", Tone.NOTICE) for one in plan.drift)
    for name, part in plan.hosts.items():
        if not part.empty:
            yield Line("")
            yield from _host(name, part, plan.join, diffs)
    if plan.notices:
        yield Line("")
    yield from (Line(f"{one.severity}: {one}", Tone.NOTICE) for one in plan.notices)
    yield Line("")
    yield Line(summary(plan), Tone.HEAD)


def reason_lines(plan: Plan) -> Iterator[Line]:
    """Yield where each value of each host and rank comes from, as `explain` says of one."""
    for subject, why in plan.explained.items():
        yield Line("")
        yield Line(subject, Tone.HEAD)
        width = max(map(len, why), default=0)
        yield from (Line(f"  {name:{width}}  {reason}", Tone.QUIET) for name, reason in why.items())


def summary(plan: Plan) -> str:
    """Return one line that counts files by change and ranks by action."""
    if plan.empty:
        return "Nothing to change."
    changes = [one.change for part in plan.hosts.values() for one in part.changes]
    words = [
        f"{_count(changes.count(change), 'file')} {change}"
        for change in Change
        if change in changes
    ]
    for action in ("start", "restart", "stop"):
        ranks = {
            one.rank for part in plan.hosts.values() for one in part.actions if one.action == action
        }
        words += [f"{named(ranks)} to {action}"] if ranks else []
    touched = sum(1 for part in plan.hosts.values() if not part.empty)
    return f"{_count(touched, 'host')} to change: {', '.join(words) or 'marks only'}."


def _table(ranks: tuple[RankRow, ...]) -> Iterator[Line]:
    # A stop knows neither device nor address, and few jobs share out layers.
    columns = [one for one in _COLUMNS if any(getattr(row, one) != "" for row in ranks)]
    rows = [[str(getattr(row, column)) or "-" for column in columns] for row in ranks]
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for tone, cells in ((Tone.QUIET, columns), *((Tone.PLAIN, row) for row in rows)):
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        yield Line(f"  {'  '.join(padded).rstrip()}", tone)


def _host(name: str, part: HostPlan, join: str, diffs: Collection[Change]) -> Iterator[Line]:
    yield Line(f"{name} ({part.launch})", Tone.HEAD)
    for change in part.changes:
        yield from _change(change, diffs)
    for (action, why), ranks in _alike(part.actions).items():
        yield Line(f"  {action} {named(ranks)}: {why if len(ranks) == 1 else _of_many(why)}")
    if part.stage:
        yield Line(f"  first: {'; '.join(map(str, part.stage))}", Tone.QUIET)
    if part.go:
        yield Line(f"  then: {'; '.join(map(str, part.go))}", Tone.QUIET)
    if part.back:
        stays = "; ".join(map(str, part.confirm)) or "keep it"
        are_up = "have started" if join == "exec" else "have joined"
        yield Line(f"  once all ranks {are_up}: {stays}", Tone.QUIET)
        yield Line(f"  else, or in {part.back.after_s} s by itself: {part.back}", Tone.QUIET)


def _alike(actions: tuple[UnitAction, ...]) -> Mapping[tuple[str, str], list[int]]:
    """Return the ranks by what happens to them, and why."""
    found: dict[tuple[str, str], list[int]] = {}
    for one in actions:
        found.setdefault((one.action, one.why), []).append(one.rank)
    return found


def _of_many(why: str) -> str:
    """Return what is said of one rank as it is said of several."""
    for one, many in _PLURALS.items():
        why = re.sub(rf"\b{one}\b", many, why)
    return why


def _change(change: FileChange, diffs: Collection[Change]) -> Iterator[Line]:
    source = f" from {change.source}" if change.source else ""
    size = f" ({change.size} bytes{source})"
    yield Line(f"  {_MARKS[change.change]} {change.path}{size}", Tone(change.change.value))
    for line in change.diff.splitlines() if change.change in diffs else ():
        yield Line(f"      {line}", _DIFF_TONES.get(line[:1], Tone.PLAIN))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
