"""How fast a group is deployed, against its peers by turns: `python -m bench deploy`.

Every contender starts the same built-in node with the same files on the same hosts.  *push* is the
time to the last rank's start, *joined* to the last READY, both from the first instruction of the
contender's process.  It needs root and the packages of a fleet, and the peers.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.deploy_contenders import ansible, floor, lacking, ours, pyinfra
from bench.deploy_group import Group
from bench.deploy_latency import latency, many
from bench.deploy_sample import Sample, sample
from tests.fleet.harness.fleet import running_fleet
from tests.fleet.harness.needs import unmet_need

HOSTS = 24
MANY = 48
ROUNDS = 4
# One round of ansible-core takes a minute.
SLOW_ROUNDS = 2


@dataclass(frozen=True)
class Bound:
    """How many times another's figure ours has to be at most; *figure* is a field of Sample."""

    figure: str
    other: str
    most: float

    def row(self, taken: Mapping[str, Sequence[Sample]]) -> str:
        """Return the bound's row: what is asked, what is so, and whether that is enough."""
        mine, theirs = (_median(taken[name], self.figure) for name in ("rlxdeploy", self.other))
        ratio = mine / theirs
        held = "yes" if ratio <= self.most else "no"
        asked, found = _as_speed(self.most), _as_speed(ratio)
        return f"| {_WORDS[self.figure]} | {self.other} | {asked} | {found} | {held} |"


_WORDS = {"push": "push", "joined": "joined", "again": "nothing to do"}
BOUNDS = (
    Bound("push", "ansible-core", 1 / 10),
    Bound("push", "pyinfra", 1.0),
    Bound("push", "one exec a host", 1.5),
    Bound("joined", "one exec a host", 1.5),
    Bound("again", "ansible-core", 1 / 12),
    Bound("again", "pyinfra", 1 / 1.5),
)


def unmet() -> str:
    """Return what this machine lacks for the benchmark; nothing where all is there."""
    return unmet_need() or lacking()


def run(hosts: int = HOSTS, rounds: int = ROUNDS) -> str:
    """Measure all contenders by turns, then ourselves far away and on more hosts; the tables."""
    load = os.getloadavg()[0]
    with running_fleet(_say) as fleet:
        group = Group(fleet, fleet.hosts(hosts))
        taken = _by_turns(group, rounds)
        tables = [_table(taken), _bounds(taken), latency(group)]
        more = fleet.hosts(max(0, MANY - hosts))
        tables.append(many(Group(fleet, [*group.hosts, *more])))
    told = (
        f"{hosts} hosts, three Debian releases by turns, on {os.cpu_count()} cores;"
        f" load average {load:.1f} before it began."
    )
    return "\n\n".join([*tables, told])


def _by_turns(group: Group, rounds: int) -> dict[str, list[Sample]]:
    quick = (ours, pyinfra, floor)
    taken: dict[str, list[Sample]] = {}
    for turn in range(rounds):
        for maker in (*quick, ansible) if turn < SLOW_ROUNDS else quick:
            one = maker(group)
            taken.setdefault(one.name, []).append(sample(group, one))
            _say(f"{one.name}: {taken[one.name][-1]}; load {os.getloadavg()[0]:.1f}")
    return taken


def _table(taken: Mapping[str, Sequence[Sample]]) -> str:
    rows = [
        "| contender | push, s | joined, s | the command, s | nothing to do, s | runs |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, samples in taken.items():
        figures = (_median(samples, figure) for figure in ("push", "joined", "first", "again"))
        cells = " | ".join(f"{figure:.2f}" for figure in figures)
        rows.append(f"| {name} | {cells} | {len(samples)} |")
    apart = _median(taken["rlxdeploy"], "preflight")
    return "\n".join([*rows, "", f"The preflight, apart: {apart:.2f} s."])


def _bounds(taken: Mapping[str, Sequence[Sample]]) -> str:
    rows = (bound.row(taken) for bound in BOUNDS)
    head = "| rlxdeploy's | against | asked | measured | held |"
    return "\n".join([head, "|---|---|---:|---:|---|", *rows])


def _median(samples: Sequence[Sample], figure: str) -> float:
    return statistics.median(getattr(one, figure) for one in samples)


def _as_speed(ratio: float) -> str:
    return f"{1 / ratio:.1f} times as fast" if ratio < 1 else f"{ratio:.2f} times as long"


def _say(line: str) -> None:
    print(line, file=sys.stderr)
