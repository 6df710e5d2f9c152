"""One contender's first apply and the one after it: the measurement of `bench.deploy`."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from bench.deploy_contenders import Contender
from bench.deploy_group import JOB, Group

_DEADLINE_S = 300.0


@dataclass(frozen=True)
class Sample:
    """Seconds from the first instruction of the contender's process.

    *push* ends with the last rank's start, *joined* with the last READY, *first* with the command
    itself; *again* is a whole apply that has nothing to do.  *preflight* is what no other contender
    does; it is in none of the other figures.
    """

    push: float
    joined: float
    first: float
    again: float
    preflight: float = 0.0


def sample(group: Group, one: Contender) -> Sample:
    """Clear the hosts and let *one* apply twice; raises RuntimeError where that goes wrong."""
    group.clear(prepared=one.prepared)
    began = time.monotonic()
    _run(group, one, one.first)
    first = time.monotonic() - began
    ranks = group.began(began)
    preflight = 0.0 if one.prepared else _preflight(group)
    resumed = time.monotonic()
    _run(group, one, one.again)
    again = time.monotonic() - resumed
    if group.began(began).processes != ranks.processes:
        raise RuntimeError(f"{one.name} restarted ranks although nothing had changed")
    return Sample(
        ranks.push - preflight, ranks.joined - preflight, first - preflight, again, preflight
    )


def _run(group: Group, one: Contender, argv: tuple[str, ...]) -> None:
    ran = group.fleet.controller(argv, timeout=_DEADLINE_S, env=one.env)
    if ran.returncode:
        raise RuntimeError(
            f"{one.name}: exit {ran.returncode}: {(ran.stdout + ran.stderr)[-3000:]}"
        )


def _preflight(group: Group) -> float:
    """Return how long the last run's preflight took, as its journal has it."""
    journal = group.desk.folder / ".rlxdeploy" / f"{JOB}.journal"
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    stages = [line for line in lines if line["run"] == lines[-1]["run"]]
    tried = (line for line in stages if str(line.get("stage")).startswith("preflight"))
    return float(sum(line.get("seconds", 0.0) for line in tried))
