"""`unlock`: free a job that somebody holds and will not let go."""

import typer

from rlxdeploy.app.unlock import Locks, find_locks, unlock
from rlxdeploy.cli.failure import failure_document, failures_document, worst
from rlxdeploy.cli.options import (
    AskBecomePass,
    Exclude,
    Forks,
    InventoryArgument,
    InventoryOption,
    Json,
    Limit,
    Yes,
    chosen,
    confirm,
    scope_of,
)
from rlxdeploy.cli.reach import reach
from rlxdeploy.cli.screen import Screen
from rlxdeploy.model.outcome import Outcomes

app = typer.Typer()

UNREACHABLE = 4


@app.command("unlock")
def unlock_command(
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    limit: Limit = None,
    exclude: Exclude = None,
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
            locks = find_locks(path, lab, say, scope_of(limit, exclude))
        for host, holder in locks.holders.items():
            screen.tell(f"{host}: held by {holder}")
        if locks.holders:
            confirm(screen, "End them?", yes=yes)
        freed = unlock(locks, lab)
    for error in freed.failed.values():
        screen.tell(f"error: {error}", "red", failed=True)
    for silent in locks.unasked.values():
        screen.tell(f"error: {silent}; it was left as it is", "red", failed=True)
    code = worst([1] * bool(freed.failed) + [UNREACHABLE] * bool(locks.unasked))
    if as_json:
        screen.document(_document(locks, freed, code))
    screen.tell(_verdict(locks, freed))
    return code


def _document(locks: Locks, freed: Outcomes[str], code: int) -> dict[str, object]:
    done = {host: {"ok": True, "held_by": who} for host, who in freed.done.items()}
    failed = {host: {"ok": False, **failure_document(one)} for host, one in freed.failed.items()}
    return {
        "command": "unlock",
        "job": locks.job,
        "asked": list(locks.asked),
        "hosts": {**done, **failed},
        "unasked": failures_document(locks.unasked),
        "exit": code,
    }


def _verdict(locks: Locks, freed: Outcomes[str]) -> str:
    if not locks.holders:
        asked = f"{len(locks.asked)} host{'s' * (len(locks.asked) != 1)}"
        return f"{locks.job}: nothing was locked on the {asked} asked."
    return f"{locks.job}: {len(freed.done)} of {len(locks.holders)} locked hosts unlocked."
