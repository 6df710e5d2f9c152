"""`apply`: carry the plan out, and wait until the group has formed."""

import typer

from rlxdeploy.app.apply import apply_job
from rlxdeploy.app.compile import Request
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.plan import plan_job
from rlxdeploy.cli.options import (
    Adopt,
    InventoryArgument,
    InventoryOption,
    JoinTimeout,
    Json,
    ShowDiff,
    Templates,
    Yes,
    chosen,
    confirm,
)
from rlxdeploy.cli.screen import Screen
from rlxdeploy.cli.show import applied_document, exit_of, show_applied, show_plan

app = typer.Typer()


@app.command("apply")
def apply_command(
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    templates: Templates = None,
    join_timeout: JoinTimeout = None,
    adopt: Adopt = False,
    yes: Yes = False,
    diff: ShowDiff = None,
    as_json: Json = False,
) -> int:
    """Bring the hosts to what the inventory says, and the ranks into one group."""
    screen, lab = Screen(as_json=as_json), Lab()
    request = Request(chosen(inventory, option), templates=templates)
    with screen.progress() as say:
        planned = plan_job(request, lab, say, join_timeout=join_timeout, adopt=adopt)
    show_plan(screen, planned.plan, diff=diff)
    if not planned.plan.empty:
        confirm(screen, "Carry this out?", yes=yes)
    with screen.progress() as say:
        applied = apply_job(planned, lab, say)
    if as_json:
        screen.document(applied_document(applied, "apply"))
    if not planned.plan.empty:
        show_applied(screen, applied, "apply")
    return exit_of(applied)
