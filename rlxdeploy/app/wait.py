"""Waiting for a group: until every rank has joined, or has ended."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rlxdeploy.app.lab import Lab
from rlxdeploy.app.look import Status, status
from rlxdeploy.app.say import Doing, Say, nobody
from rlxdeploy.model.scope import ALL, Scope

PAUSE_S = 0.5
ENDED = ("exited", "inactive", "failed", "missing")


@dataclass(frozen=True, slots=True)
class Awaited:
    """What is waited for: that the ranks of *scope* join, or have *finished*, within *timeout*."""

    timeout: float
    finished: bool = False
    scope: Scope = ALL


def wait(inventory: Path, lab: Lab, say: Say, awaited: Awaited) -> Status:
    """Return the status once all ranks are as wanted or one can no more be, or at the timeout.

    Raises UsageError where nobody is meant.
    """
    finished = awaited.finished
    done: Callable[[Status], bool] = has_ended if finished else has_joined
    deadline = time.monotonic() + awaited.timeout
    while True:
        seen = status(inventory, lab, nobody, awaited.scope)
        hopeless = not finished and any(rank.broken or rank.finished for rank in seen.ranks)
        if done(seen) or hopeless or time.monotonic() >= deadline:
            return seen
        say(doing(seen, finished=finished))
        time.sleep(min(PAUSE_S, max(0.0, deadline - time.monotonic())))


def doing(seen: Status, *, finished: bool) -> Doing:
    """Return how far the ranks are, and whom or what the wait lacks."""
    ranks = missing(seen, finished=finished)
    every = seen.world if seen.whole else len(seen.ranks)
    silent = (f"an answer of {host}" for host in seen.failed)
    return Doing(
        "ended" if finished else "joined",
        every - len(ranks),
        every,
        (*(f"rank {rank}" for rank in ranks), *silent),
        note="" if seen.deployed else "nothing is deployed",
    )


def has_joined(seen: Status) -> bool:
    """Tell whether every rank of the group has joined."""
    return seen.deployed and not seen.failed and not missing(seen, finished=False)


def has_ended(seen: Status) -> bool:
    """Tell whether every rank of the group has ended."""
    return seen.deployed and not seen.failed and not missing(seen, finished=True)


def missing(seen: Status, *, finished: bool) -> tuple[int, ...]:
    """Return the ranks that are not yet as wanted."""
    if finished:
        return tuple(rank.rank for rank in seen.ranks if rank.state not in ENDED)
    return tuple(rank.rank for rank in seen.ranks if not rank.joined)


def worst_exit(seen: Status) -> int:
    """Return the worst exit of ranks that have ended: 0 only where every one finished well."""
    exits = [1 if rank.exit_status is None else rank.exit_status for rank in seen.ranks]
    return max(exits, default=1)
