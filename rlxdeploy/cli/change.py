"""`stop`, `restart` and `destroy`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import typer

from rlxdeploy.app.apply import begin
from rlxdeploy.app.change import Change, Whom, change, destroying, restarting, stopping
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import Say
from rlxdeploy.app.scope import named_failed
from rlxdeploy.cli.failure import failures_document, worst
from rlxdeploy.cli.interrupt import in_good_order
from rlxdeploy.cli.options import (
    Adopt,
    AskBecomePass,
    Exclude,
    Forks,
    InventoryArgument,
    InventoryOption,
    JoinTimeout,
    Json,
    Limit,
    MaxFail,
    Narrowed,
    Yes,
    chosen,
    confirm,
    of_everybody,
    scope_of,
)
from rlxdeploy.cli.reach import reach
from rlxdeploy.cli.resume import going_on, terms
from rlxdeploy.cli.screen import Screen
from rlxdeploy.cli.show import applied_document, exit_of, show_applied, show_plan
from rlxdeploy.model.scope import ALL, Scope

app = typer.Typer()

UNREACHABLE = 4


@app.command("stop")
def stop_command(
    context: typer.Context,
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    limit: Limit = None,
    exclude: Exclude = None,
    adopt: Adopt = False,
    max_fail: MaxFail = 0,
    yes: Yes = False,  # noqa: ARG001 - nothing is asked; a script may say it all the same
    forks: Forks = None,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> int:
    """Stop every rank; the files stay, and apply or restart starts the group again."""
    path, whom = chosen(inventory, option), Whom(scope_of(limit, exclude), adopt, max_fail)
    return _run(
        context,
        path,
        lambda lab, say: stopping(path, lab, say, whom),
        scope=whom.scope,
        forks=forks,
        ask_become_pass=ask_become_pass,
        as_json=as_json,
    )


@app.command("restart")
def restart_command(
    context: typer.Context,
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    join_timeout: JoinTimeout = None,
    narrowed: Narrowed = None,
    yes: Yes = False,  # noqa: ARG001 - as for stop
    forks: Forks = None,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> int:
    """Start the whole group anew with what is deployed, and wait until it has formed."""
    of_everybody("restart", narrowed)
    path = chosen(inventory, option)
    return _run(
        context,
        path,
        lambda lab, say: restarting(path, lab, say, join_timeout=join_timeout),
        forks=forks,
        ask_become_pass=ask_become_pass,
        as_json=as_json,
    )


@app.command("destroy")
def destroy_command(
    context: typer.Context,
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    limit: Limit = None,
    exclude: Exclude = None,
    adopt: Adopt = False,
    max_fail: MaxFail = 0,
    yes: Yes = False,
    forks: Forks = None,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> int:
    """Stop the job and remove every trace of it from its hosts."""
    path, whom = chosen(inventory, option), Whom(scope_of(limit, exclude), adopt, max_fail)
    return _run(
        context,
        path,
        lambda lab, say: destroying(path, lab, say, whom),
        scope=whom.scope,
        forks=forks,
        ask_become_pass=ask_become_pass,
        as_json=as_json,
        ask=not yes,
    )


def _run(
    context: typer.Context,
    path: Path,
    planning: Callable[[Lab, Say], Change],
    *,
    forks: int | None,
    ask_become_pass: bool,
    as_json: bool,
    ask: bool = False,
    scope: Scope = ALL,
) -> int:
    screen = Screen(as_json=as_json)
    resume = partial(going_on, context, inventory=path, option=None)
    with in_good_order(screen, resume()) as watch, reach(forks, ask=ask_become_pass) as lab:
        with screen.progress() as say:
            wanted = planning(lab, say)
        if not wanted.plan.empty:
            show_plan(screen, wanted.plan, diff=False)
            confirm(screen, "Destroy this?", yes=not ask)
            watch.resume = resume(**terms(named_failed(scope, path, wanted.plan.job)))
            watch.run = begin(wanted.verb, wanted.plan, path)
        with screen.progress() as say:
            done = change(wanted, lab, say, watch.run)
    code = worst([exit_of(done), *([UNREACHABLE] if wanted.unasked else [])])
    if as_json:
        document = applied_document(done, wanted.verb)
        screen.document({**document, "unasked": failures_document(wanted.unasked), "exit": code})
    show_applied(screen, done, wanted.verb)
    for error in wanted.unasked.values():
        screen.tell(f"error: {error}; it was left as it is", "red", failed=True)
    return code
