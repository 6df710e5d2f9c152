"""A plan and what came of it, on the screen and as JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict

from rlxdeploy.app.apply import Applied
from rlxdeploy.cli.failure import exit_code_of, failure_document, worst
from rlxdeploy.cli.matrix import matrix_document, show_matrix
from rlxdeploy.cli.screen import Screen
from rlxdeploy.cli.states import show_states
from rlxdeploy.edge.watch import Blamed
from rlxdeploy.model.plan import Change, Plan, RankRow
from rlxdeploy.plan.codec import dump_plan
from rlxdeploy.plan.text import Tone, plan_lines, reason_lines

SOME_FAILED = 3

_DONE = {
    "apply": "applied",
    "stop": "stopped",
    "restart": "restarted",
    "destroy": "destroyed",
    "rollback": "rolled back",
}

_STYLES: Mapping[Tone, str] = {
    Tone.HEAD: "bold",
    Tone.CREATED: "green",
    Tone.CHANGED: "yellow",
    Tone.REMOVED: "red",
    Tone.QUIET: "dim",
    Tone.NOTICE: "yellow",
}


def show_plan(screen: Screen, plan: Plan, *, diff: bool | None) -> None:
    """Print the whole plan for people: every text, none, or (None) those of changed files."""
    shown = {None: (Change.CHANGED,), True: tuple(Change), False: ()}[diff]
    for line in plan_lines(plan, shown):
        screen.tell(line.text, _STYLES.get(line.tone, ""))


def show_reasons(screen: Screen, plan: Plan) -> None:
    """Print why everything in a plan is as it is."""
    for line in reason_lines(plan):
        screen.tell(line.text, _STYLES.get(line.tone, ""))


def plan_document(plan: Plan) -> dict[str, object]:
    """Return a plan as JSON shows it."""
    document: dict[str, object] = json.loads(dump_plan(plan))
    document.pop("format_version")
    return {**document, "changes": not plan.empty}


def applied_document(applied: Applied, verb: str) -> dict[str, object]:
    """Return what came of an apply as JSON shows it."""
    watched = applied.watched
    return {
        "command": verb,
        "job": applied.plan.job,
        "release": applied.plan.release,
        "changed": applied.went,
        "preflight": matrix_document(applied.preflight),
        "hosts": {name: _host(applied, name) for name in (*applied.plan.hosts, *applied.failed)},
        "joined": None if watched is None else watched.ok,
        "waited": None if watched is None else round(watched.waited, 3),
        "blamed": [_blamed(one) for one in watched.blamed] if watched else [],
        "unproven_devices": [row.rank for row in applied.unproven],
        "rolled_back": bool(applied.back),
        "kept": list(applied.kept),
        "rejoined": None if applied.again is None else applied.again.ok,
        "exit": exit_of(applied),
    }


def show_applied(screen: Screen, applied: Applied, verb: str) -> None:
    """Print what came of an apply: a success with the results, a failure in full on stderr."""
    if applied.preflight:
        show_matrix(screen, applied.preflight)
    if applied.ok:
        for row in applied.unproven:
            screen.tell(_unproven(row), "yellow", failed=True)
        screen.tell(_verdict(applied, verb), "bold green")
        return
    for error in applied.failed.values():
        screen.tell(f"error: {error}", "red", failed=True)
    for blamed in applied.watched.blamed if applied.watched else ():
        _show_blamed(screen, blamed)
    if not applied.went and 0 < len(applied.failed) <= applied.plan.asked.max_fail:
        screen.tell("--max-fail spares no host whose ranks start with the others", failed=True)
    if not applied.went and (applied.failed or not applied.can_form):
        screen.tell("Nothing was changed on any host.", "bold", failed=True)
    show_states(screen, applied.back)
    for line in applied.kept:
        screen.tell(line, failed=True)
    for blamed in applied.again.blamed if applied.again else ():
        _show_blamed(screen, blamed)
    screen.tell(_verdict(applied, verb), "bold red", failed=True)


def exit_of(applied: Applied) -> int:
    """Return the exit code: 3 where ranks, or hosts after GO, failed; else that of the errors."""
    if applied.ok:
        return 0
    if applied.went or applied.watched:
        return SOME_FAILED
    cannot_form = [] if applied.can_form else [1]
    return worst([*cannot_form, *(exit_code_of(error) or 1 for error in applied.failed.values())])


def _unproven(row: RankRow) -> str:
    what = f"rank {row.rank} on {row.host}: not proven that it sees its device ({row.device})"
    return f"warning: {what}: its process could not be looked at, or the host shows no device node"


def _show_blamed(screen: Screen, blamed: Blamed) -> None:
    screen.tell(f"error: {blamed}", "red", failed=True)
    for line in blamed.log:
        screen.notes.out(f"  | {line}", highlight=False)


def _verdict(applied: Applied, verb: str) -> str:
    watched, plan = applied.watched, applied.plan
    if applied.back and not applied.ok:
        return _went_back(applied)
    if watched is None:
        return _carried(applied, verb)
    if watched.ok:
        proven = "joined" if plan.join == "notify" else "started, joining not proven"
        ranks = sum(1 for row in plan.ranks if row.managed)
        return f"{plan.job}: {ranks} of {plan.world} ranks {proven} in {watched.waited:.1f} s."
    after = f"after {watched.waited:.1f} s"
    left = f"release {plan.release} stays" if applied.went else "nothing was changed"
    return f"{plan.job}: the group did not form ({after}); {left}."


def _went_back(applied: Applied) -> str:
    plan, watched, again = applied.plan, applied.watched, applied.again
    formed = (
        f"the group did not form (after {watched.waited:.1f} s)" if watched else "a host failed"
    )
    whole = all(one.state in ("gone back", "cleared") for one in applied.back.values())
    if again is None:
        left = "the hosts are as they were" if whole else "not every host is as it was"
    elif again.ok:
        releases = {one.release for one in applied.back.values() if one.release}
        left = f"release {', '.join(sorted(releases))} has joined again in {again.waited:.1f} s"
    else:
        left = "the release before was started again and has not joined"
    return f"{plan.job}: {formed}; {left}."


def _carried(applied: Applied, verb: str) -> str:
    job = applied.plan.job
    if not applied.can_form:
        return f"{job}: the group cannot form like this."
    if applied.ok:
        return f"{job}: {_DONE[verb]}." if applied.went else f"{job}: nothing to {verb}."
    return f"{job}: {verb} failed on {len(applied.failed)} of {len(applied.plan.hosts)} hosts."


def _host(applied: Applied, name: str) -> dict[str, object]:
    state = applied.back.get(name)
    came_to = {} if state is None else asdict(state)
    error = applied.failed.get(name)
    if error is not None:
        return {"ok": False, **failure_document(error), **came_to}
    changed = applied.went and not applied.plan.hosts[name].empty
    ok = state is None or applied.ok
    return {"ok": ok, "changed": changed and ok, **came_to}


def _blamed(blamed: Blamed) -> dict[str, object]:
    return {
        "rank": blamed.rank,
        "host": blamed.host,
        "address": blamed.address,
        "why": blamed.why,
        "log": list(blamed.log),
    }
