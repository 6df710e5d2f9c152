"""`apply`: carry the plan out, and wait until the group has formed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlxdeploy.app.compile import Request
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.plan import Planned, Wish, plan_job
from rlxdeploy.app.saved import is_plan, plan_again, read_plan
from rlxdeploy.app.say import Say
from rlxdeploy.app.scope import named_failed, noted_if_silent
from rlxdeploy.cli.interrupt import Watch, in_good_order
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
    Templates,
    Yes,
    chosen,
    confirm,
    scope_of,
)
from rlxdeploy.cli.reach import reach
from rlxdeploy.cli.resume import going_on, terms
from rlxdeploy.cli.screen import Screen
from rlxdeploy.errors import UsageError

if TYPE_CHECKING:
    from rlxdeploy.app.apply import Applied

app = typer.Typer()

Preflight = Annotated[
    bool,
    typer.Option(
        "--preflight/--no-preflight",
        help="Try every link between ranks first, where PEERS or WORLD change.",
    ),
]


@app.command("apply")
def apply_command(
    context: typer.Context,
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    templates: Templates = None,
    join_timeout: JoinTimeout = None,
    limit: Limit = None,
    exclude: Exclude = None,
    adopt: Adopt = False,
    skip_unreachable: SkipUnreachable = False,
    max_fail: MaxFail = 0,
    promote: Promote = None,
    forks: Forks = None,
    yes: Yes = False,
    diff: ShowDiff = None,
    preflight: Preflight = True,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> int:
    """Bring the hosts to what the inventory says, and the ranks into one group.

    Given a plan saved by `plan --out`, carry out exactly that, or exit with 6 and what has moved.
    """
    screen = Screen(as_json=as_json)
    request = Request(
        chosen(inventory, option),
        templates=templates,
        skip_unreachable=skip_unreachable,
        promote=tuple(promote or ()),
        max_fail=max_fail,
    )
    wish = Wish(join_timeout, adopt, scope=scope_of(limit, exclude))
    resume = partial(going_on, context, inventory=request.inventory, option=None)
    with in_good_order(screen, resume()) as watch, reach(forks, ask=ask_become_pass) as lab:
        manner = Manner(wish, yes, diff, watch, preflight, resume)
        applied = _apply(request, lab, screen, manner)
    from rlxdeploy.cli.show import applied_document, exit_of, show_applied  # noqa: PLC0415 - below

    if as_json:
        screen.document(applied_document(applied, "apply"))
    if applied.watched or not applied.plan.empty:
        show_applied(screen, applied, "apply")
    return exit_of(applied)


@dataclass(frozen=True, slots=True)
class Manner:
    """The command line's say in how an apply goes."""

    wish: Wish
    yes: bool
    diff: bool | None
    watch: Watch
    preflight: bool
    resume: Callable[..., str]


def _apply(request: Request, lab: Lab, screen: Screen, manner: Manner) -> "Applied":
    with screen.progress() as say:
        planned = _planned(request, lab, say, manner.wish)
    # Loaded while the hosts were asked, see `app.compile`.
    from rlxdeploy.app.apply import apply_job, begin  # noqa: PLC0415 - as said above
    from rlxdeploy.cli.show import show_plan  # noqa: PLC0415

    show_plan(screen, planned.plan, diff=manner.diff)
    if not planned.plan.empty:
        confirm(screen, "Carry this out?", yes=manner.yes)
    if not planned.plan.empty:
        path = Path(planned.compiled.loaded.path)
        scope = named_failed(manner.wish.scope, path, planned.plan.job)
        manner.watch.resume = manner.resume(**terms(scope))
        manner.watch.run = begin("apply", planned.plan, path)
    with screen.progress() as say:
        return apply_job(planned, lab, say, manner.watch.run, preflight=manner.preflight)


def _planned(request: Request, lab: Lab, say: Say, wish: Wish) -> Planned:
    if not is_plan(request.inventory):
        with noted_if_silent("apply", request.inventory):
            return plan_job(request, lab, say, wish)
    if (request, wish) != (Request(request.inventory), Wish()):
        what = "a saved plan is carried out as it was saved"
        raise UsageError(f"{what}; give what changes a plan to `rlxdeploy plan --out`")
    saved = read_plan(request.inventory)
    with noted_if_silent("apply", Path(saved.asked.inventory)):
        return plan_again(saved, lab, say)
