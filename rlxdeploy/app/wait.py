"""Waiting for a group: until every rank has joined, or has ended."""

import time
from collections.abc import Callable
from pathlib import Path

from rlxdeploy.app.lab import Lab
from rlxdeploy.app.look import Status, status
from rlxdeploy.app.say import Doing, Say, nobody

PAUSE_S = 0.5
ENDED = ("exited", "inactive", "failed", "missing")


def wait(inventory: Path, timeout: float, lab: Lab, say: Say, *, finished: bool) -> Status:
    """Return the status once all ranks are as wanted or one can no more be, or at *timeout*."""
    done: Callable[[Status], bool] = has_ended if finished else has_joined
    deadline = time.monotonic() + timeout
    while True:
        seen = status(inventory, lab, nobody)
        hopeless = not finished and any(rank.broken for rank in seen.ranks)
        if done(seen) or hopeless or time.monotonic() >= deadline:
            return seen
        say(doing(seen, finished=finished))
        time.sleep(min(PAUSE_S, max(0.0, deadline - time.monotonic())))


def doing(seen: Status, *, finished: bool) -> Doing:
    """Return how far the ranks are, and whom or what the wait lacks."""
    ranks = missing(seen, finished=finished)
    silent = (f"an answer of {host}" for host in seen.failed)
    return Doing(
        "ended" if finished else "joined",
        seen.world - len(ranks),
        seen.world,
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
