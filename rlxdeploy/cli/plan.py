"""`plan` and `show`: what apply would do, with nothing changed."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from rlxdeploy.app.compile import Request
from rlxdeploy.app.plan import Wish, plan_job
from rlxdeploy.app.saved import read_plan, save_plan
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
    Promote,
    ShowDiff,
    SkipUnreachable,
    SurveyFile,
    Templates,
    Verbose,
    chosen,
    scope_of,
)
from rlxdeploy.cli.reach import reach
from rlxdeploy.cli.screen import Screen
from rlxdeploy.cli.show import plan_document, show_plan, show_reasons
from rlxdeploy.errors import UsageError

app = typer.Typer()

CHANGES_PENDING = 2

Detailed = Annotated[
    bool, typer.Option("--detailed-exitcode", help="Exit with 2 where there is something to do.")
]


Out = Annotated[Path | None, typer.Option("--out", help="Save the plan, for `apply PLAN`.")]
PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan saved by `plan --out`.")]


@app.command("plan")
def plan_command(
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    survey: SurveyFile = None,
    templates: Templates = None,
    join_timeout: JoinTimeout = None,
    limit: Limit = None,
    exclude: Exclude = None,
    adopt: Adopt = False,
    skip_unreachable: SkipUnreachable = False,
    max_fail: MaxFail = 0,
    promote: Promote = None,
    forks: Forks = None,
    diff: ShowDiff = None,
    detailed: Detailed = False,
    verbose: Verbose = False,
    out: Out = None,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> int:
    """Show who becomes which rank, which files change, and what starts and stops."""
    screen = Screen(as_json=as_json)
    promoted = tuple(promote or ())
    request = Request(
        chosen(inventory, option), survey, templates, skip_unreachable, promoted, max_fail
    )
    wish = Wish(join_timeout, adopt, scope=scope_of(limit, exclude))
    with reach(forks, ask=ask_become_pass) as lab, screen.progress() as say:
        planned = plan_job(request, lab, say, wish)
    plan = planned.plan
    if out is not None:
        save_plan(planned, out)
    if as_json:
        screen.document(plan_document(plan))
    else:
        show_plan(screen, plan, diff=diff)
        if verbose:
            show_reasons(screen, plan)
        if out is not None:
            line = shlex.join(("rlxdeploy", "apply", str(out)))
            screen.people.out(f"saved; carry it out with: {line}", highlight=False)
    return CHANGES_PENDING if detailed and not plan.empty else 0


@app.command("show")
def show_command(
    plan: PlanFile,
    *,
    inventory: InventoryOption = None,  # noqa: ARG001 - every command takes it; a plan names its own
    diff: ShowDiff = None,
    as_json: Json = False,
) -> None:
    """Show a saved plan; it names files by digest and size, and holds no text of them."""
    if diff:
        raise UsageError("a saved plan holds no text of files; `rlxdeploy plan --diff` shows it")
    saved = read_plan(plan)
    screen = Screen(as_json=as_json)
    if as_json:
        screen.document(plan_document(saved))
    else:
        show_plan(screen, saved, diff=False)
