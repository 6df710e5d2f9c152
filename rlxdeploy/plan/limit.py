"""A plan for some of its hosts: what `--limit` and `--exclude` leave of it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from rlxdeploy.errors import CompileError, Finding, Severity, UsageError
from rlxdeploy.model.plan import HostPlan, Plan
from rlxdeploy.model.scope import Member
from rlxdeploy.plan.epoch import named


def limited(plan: Plan, members: Sequence[Member], chosen: Collection[Member]) -> Plan:
    """Return what *plan* does on the hosts of *chosen*, and say what it leaves undone.

    *members* are all there are to choose from.  Raises CompileError where a rank is left out that
    starts or stops with the others, since its PEERS, WORLD or RLX_PLAN change; UsageError where
    only a part of the ranks of a host that changes is chosen.
    """
    hosts = whole_hosts(plan, members, chosen)
    left = {name: part for name, part in plan.hosts.items() if name not in hosts and not part.empty}
    torn = [_torn(name, part, plan) for name, part in left.items() if part.actions]
    if torn:
        raise CompileError(torn)
    idle = {name: HostPlan(part.host, part.tree, part.launch) for name, part in left.items()}
    notices = (*plan.notices, *_undone(left))
    return replace(plan, hosts={**plan.hosts, **idle}, notices=notices)


def whole_hosts(
    plan: Plan, members: Sequence[Member], chosen: Collection[Member]
) -> frozenset[str]:
    """Return the hosts of *chosen*; raises UsageError where only a part of one is to change."""
    hosts = frozenset(one.host for one in chosen)
    split = [one for one in members if one.host in hosts and one not in chosen]
    for one in split:
        part = plan.hosts.get(one.host)
        if part is not None and not part.empty:
            ranks = [m.rank for m in split if m.host == one.host and m.rank is not None]
            what = f"--limit and --exclude leave out {named(ranks)} on {one.host}"
            raise UsageError(f"{what}, and a host changes as a whole; name the host")
    return hosts


def _torn(name: str, part: HostPlan, plan: Plan) -> Finding:
    ranks = {one.rank for one in part.actions}
    verb = "has" if len(ranks) == 1 else "have"
    why = "; ".join(plan.why) or part.actions[0].why
    return Finding(
        f"{named(ranks)} on {name} {verb} to change with the others: {why}",
        key="--limit",
        remedy=f"name {name} too, or go without --limit and --exclude",
    )


def _undone(left: dict[str, HostPlan]) -> Iterator[Finding]:
    for name, part in left.items():
        count = len(part.changes)
        files = f" ({count} file{'' if count == 1 else 's'} to change)" if count else ""
        yield Finding(f"{name} is left as it is{files}", key="--limit", severity=Severity.NOTICE)
