"""`rollback`: back to an earlier release."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from rlxdeploy.app.apply import begin
from rlxdeploy.app.rollback import roll_back, rolling_back
from rlxdeploy.cli.interrupt import in_good_order
from rlxdeploy.cli.options import (
    AskBecomePass,
    Forks,
    InventoryOption,
    JoinTimeout,
    Json,
    Narrowed,
    Yes,
    chosen,
    confirm,
    of_everybody,
)
from rlxdeploy.cli.reach import reach
from rlxdeploy.cli.resume import going_on
from rlxdeploy.cli.screen import Screen
from rlxdeploy.cli.show import applied_document, exit_of, show_applied, show_plan
from rlxdeploy.errors import UsageError

app = typer.Typer()

Release = Annotated[
    str, typer.Argument(metavar="RELEASE", help="Where to go back to; by default the one before.")
]


@app.command("rollback")
def rollback_command(
    context: typer.Context,
    release: Release = "",
    *,
    option: InventoryOption = None,
    join_timeout: JoinTimeout = None,
    narrowed: Narrowed = None,
    forks: Forks = None,
    yes: Yes = False,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> int:
    """Have every host at an earlier release again, and wait until the group has formed.

    Three releases are kept; one that no host has is refused with those that there are.
    """
    of_everybody("rollback", narrowed)
    if Path(release).is_file():
        raise UsageError(
            f"{release} is a file, not a release; name the inventory with -i {release}"
        )
    screen, path = Screen(as_json=as_json), chosen(None, option)
    resume = partial(going_on, context, option=path)
    with in_good_order(screen, resume()) as watch, reach(forks, ask=ask_become_pass) as lab:
        with screen.progress() as say:
            wanted = rolling_back(path, release, lab, say, join_timeout=join_timeout)
        show_plan(screen, wanted.plan, diff=False)
        confirm(screen, "Go back?", yes=yes)
        # Once hosts have gone back, the release before theirs is another one.
        watch.resume = resume(release=wanted.plan.release)
        watch.run = begin("rollback", wanted.plan, path)
        with screen.progress() as say:
            done = roll_back(wanted, lab, say, watch.run)
    if as_json:
        screen.document(applied_document(done, "rollback"))
    show_applied(screen, done, "rollback")
    return exit_of(done)
