"""`unlock`: free a job that somebody holds and will not let go."""

import typer

from rlxdeploy.app.unlock import find_locks, unlock
from rlxdeploy.cli.failure import worst
from rlxdeploy.cli.options import (
    AskBecomePass,
    Forks,
    InventoryArgument,
    InventoryOption,
    Json,
    Yes,
    chosen,
    confirm,
)
from rlxdeploy.cli.reach import reach
from rlxdeploy.cli.screen import Screen

app = typer.Typer()

UNREACHABLE = 4


@app.command("unlock")
def unlock_command(
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    forks: Forks = None,
    yes: Yes = False,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> int:
    """End whoever holds the job's lock; what it had staged is undone, what it changed stays.

    A lock whose holder is gone needs no unlock: the next command takes it over.
    """
    screen, path = Screen(as_json=as_json), chosen(inventory, option)
    with reach(forks, ask=ask_become_pass) as lab:
        with screen.progress() as say:
            locks = find_locks(path, lab, say)
        for host, holder in locks.holders.items():
            screen.tell(f"{host}: held by {holder}")
        if locks.holders:
            confirm(screen, "End them?", yes=yes)
        freed = unlock(locks, lab)
    for host, error in freed.failed.items():
        screen.tell(f"error: {host}: {error.why}", "red", failed=True)
    for host, why in locks.unasked.items():
        screen.tell(f"error: {host}: {why}; it was left as it is", "red", failed=True)
    codes = [1] * bool(freed.failed) + [UNREACHABLE] * bool(locks.unasked)
    if as_json:
        hosts = {host: {"ok": True, "held_by": who} for host, who in freed.done.items()}
        hosts |= {host: {"ok": False, "why": one.why} for host, one in freed.failed.items()}
        document = {"job": locks.job, "hosts": hosts, "unasked": dict(locks.unasked)}
        screen.document({"command": "unlock", **document, "exit": worst(codes)})
    screen.tell(f"{locks.job}: {len(freed.done)} of {len(locks.holders)} hosts unlocked.")
    return worst(codes)
