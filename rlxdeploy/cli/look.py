"""`status`, `logs` and `wait`: how a job is, without touching it."""

import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from rlxdeploy.app.logs import Line, Unread, Wanted, follow, logs
from rlxdeploy.app.look import Status, status
from rlxdeploy.app.say import nobody
from rlxdeploy.app.wait import Awaited, has_ended, has_joined, missing, wait, worst_exit
from rlxdeploy.cli.failure import exit_code_of, failure_document, failures_document, worst
from rlxdeploy.cli.options import (
    AskBecomePass,
    Exclude,
    Forks,
    InventoryArgument,
    InventoryOption,
    Json,
    Limit,
    Timeout,
    chosen,
    scope_of,
)
from rlxdeploy.cli.reach import reach
from rlxdeploy.cli.screen import Screen
from rlxdeploy.cli.tables import status_lines
from rlxdeploy.plan.epoch import named

app = typer.Typer()

WATCH_S = 1.0
DEFAULT_WAIT_S = 120.0

Watch = Annotated[bool, typer.Option("--watch", help="Show it again each second.")]
Follow = Annotated[bool, typer.Option("-f", "--follow", help="Go on with what comes.")]
Lines = Annotated[int, typer.Option("-n", "--lines", min=0, help="Lines of each rank.")]
Since = Annotated[str, typer.Option("--since", help="From then on, as journalctl takes it.")]
Ranks = Annotated[list[int] | None, typer.Option("--rank", help="This rank only; repeatable.")]
Finished = Annotated[
    bool, typer.Option("--finished", help="Until all ranks have ended; exit with the worst.")
]


@app.command("status")
def status_command(
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    watch: Watch = False,
    limit: Limit = None,
    exclude: Exclude = None,
    forks: Forks = None,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> int:
    """Show how every rank is: state, joined, uptime, restarts, release, digest."""
    screen = Screen(as_json=as_json)
    path, scope = chosen(inventory, option), scope_of(limit, exclude)
    with reach(forks, ask=ask_become_pass) as lab:
        with screen.progress() as say:
            seen = status(path, lab, nobody if watch else say, scope)
        while watch:
            _show_again(screen, seen)
            time.sleep(WATCH_S)
            seen = status(path, lab, nobody, scope)
    if as_json:
        screen.document(status_document(seen))
    else:
        show_status(screen, seen)
    return 4 if seen.failed else 0


@app.command("logs")
def logs_command(
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    following: Follow = False,
    lines: Lines = 20,
    since: Since = "",
    ranks: Ranks = None,
    limit: Limit = None,
    exclude: Exclude = None,
    forks: Forks = None,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> int:
    """Show what the ranks printed, each line after its rank."""
    screen, path = Screen(as_json=as_json), chosen(inventory, option)
    wanted = Wanted(lines, since, tuple(ranks or ()), scope_of(limit, exclude))
    with reach(forks, ask=ask_become_pass) as lab:
        if following:
            return _follow(screen, follow(path, wanted, lab, nobody))
        found = logs(path, wanted, lab, nobody)
    if as_json:
        lines_shown = [asdict(line) for line in found.lines]
        failed = [_unread_document(one) for one in found.failed]
        screen.document({"lines": lines_shown, "failed": failed})
    else:
        for line in found.lines:
            _print(screen, line)
    for unread in found.failed:
        screen.tell(f"error: {unread}", "red", failed=True)
    return worst([exit_code_of(one.error) or 1 for one in found.failed])


def _unread_document(unread: Unread) -> dict[str, object]:
    return {"rank": unread.rank, **failure_document(unread.error)}


def _follow(screen: Screen, arriving: Iterator[Line | Unread]) -> int:
    failed = []
    for arrived in arriving:
        if isinstance(arrived, Line):
            _print(screen, arrived)
        else:
            failed.append(exit_code_of(arrived.error) or 1)
            if screen.as_json:
                screen.line({"error": _unread_document(arrived)})
            screen.tell(f"error: {arrived}", "red", failed=True)
    return worst(failed)


@app.command("wait")
def wait_command(
    inventory: InventoryArgument = None,
    *,
    option: InventoryOption = None,
    finished: Finished = False,
    timeout: Timeout = None,
    limit: Limit = None,
    exclude: Exclude = None,
    forks: Forks = None,
    ask_become_pass: AskBecomePass = False,
    as_json: Json = False,
) -> int:
    """Wait until every rank has joined, or with --finished has ended."""
    screen = Screen(as_json=as_json)
    patience = DEFAULT_WAIT_S if timeout is None else timeout
    path, scope = chosen(inventory, option), scope_of(limit, exclude)
    with reach(forks, ask=ask_become_pass) as lab, screen.progress() as say:
        seen = wait(path, lab, say, Awaited(patience, finished, scope))
    if as_json:
        screen.document(status_document(seen))
    else:
        show_status(screen, seen)
    if finished and has_ended(seen):
        return worst_exit(seen)
    if not finished and has_joined(seen):
        return 0
    _lacking(screen, seen, patience, finished=finished)
    return 1


def _show_again(screen: Screen, seen: Status) -> None:
    if screen.as_json:
        screen.line(status_document(seen))
        return
    screen.results.clear()
    show_status(screen, seen)


def show_status(screen: Screen, seen: Status) -> None:
    """Print a job's table and one line that sums it up."""
    for line in status_lines(seen, screen.width):
        screen.people.print(line)
    screen.people.out(_summary(seen), highlight=False)
    for rank in seen.ranks:
        if rank.blind:
            screen.notes.out(
                f"warning: rank {rank.rank} on {rank.host}: {rank.blind}", highlight=False
            )
    for one in seen.drift:
        screen.tell(f"drift: {one}", "yellow")
    for error in seen.failed.values():
        screen.tell(f"error: {error}", "red", failed=True)


def status_document(seen: Status) -> dict[str, object]:
    """Return a status as JSON shows it."""
    return {
        "job": seen.job,
        "world": seen.world,
        "joined": seen.joined,
        "proven": seen.proven,
        "ranks": [asdict(rank) for rank in seen.ranks],
        "drift": [asdict(one) for one in seen.drift],
        "failed": failures_document(seen.failed),
    }


def _summary(seen: Status) -> str:
    if not seen.ranks:
        return f"{seen.job}: not deployed"
    word = "joined" if seen.proven else "started, joining not proven"
    finished = sum(rank.finished for rank in seen.ranks)
    ended = f", {finished} finished" if finished else ""
    these = f"{seen.world}" if seen.whole else f"these {len(seen.ranks)}"
    if finished == len(seen.ranks):
        return f"{seen.job}: {finished} of {these} ranks finished"
    if not seen.whole:
        return f"{seen.job}: {seen.joined} of {these} ranks {word}{ended}"
    digests = {rank.digest for rank in seen.ranks if rank.digest}
    agreed = ", digests equal" if len(digests) == 1 and seen.joined == seen.world > 1 else ""
    return f"{seen.job}: {seen.joined} of {these} ranks {word}{agreed}{ended}"


def _lacking(screen: Screen, seen: Status, patience: float, *, finished: bool) -> None:
    word = "ended" if finished else "joined"
    lacking = missing(seen, finished=finished)
    if broken := [rank for rank in seen.ranks if rank.broken]:
        why = ", ".join(f"rank {rank.rank} has failed ({rank.status})" for rank in broken)
    elif not finished and (ended := [rank.rank for rank in seen.ranks if rank.finished]):
        verb = "has" if len(ended) == 1 else "have"
        why = f"{named(ended)} {verb} finished and will not join; `wait --finished` awaits the end"
    elif not seen.deployed:
        why = f"after {patience:g} s nothing is deployed"
    else:
        why = f"after {patience:g} s not {word}: {named(lacking)}"
    screen.notes.out(f"error: {why}", highlight=False)


def _print(screen: Screen, line: Line) -> None:
    if screen.as_json:
        screen.line(asdict(line))
    else:
        screen.results.out(f"rank {line.rank} | {line.text}", highlight=False)
