"""What distance costs an apply, and that more hosts than `forks` do: parts of `bench.deploy`."""

from __future__ import annotations

import operator
import os
import signal
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.deploy_contenders import ours
from bench.deploy_group import Group
from bench.deploy_sample import Sample, sample

ROUND_TRIP_MS = 50
# A single host is quick, so what else the machine does weighs more.
_ROUNDS_OF_ONE, _ROUNDS_OF_ALL = 5, 4
_FIRST_PORT = 40000
# A connection that is closed is still on its way for half a round trip.
_CLOSED_S = 1.0
_ROOT = Path(__file__).parents[1]

_WAY = """\
Host {name}
  HostName 127.0.0.1
  Port {port}
  User root
  HostKeyAlias {address}
"""


@dataclass(frozen=True)
class Pair:
    """Two samples that were taken one right after the other, with nothing in between and with."""

    near: Sample
    far: Sample


@dataclass(frozen=True)
class Cost:
    """What distance does to a first apply (`first`) and one without a change (`again`).

    *trips* are the round trips of each, as the proxy counts them on the connection with the most.
    """

    pairs: tuple[Pair, ...]
    trips: Mapping[str, int]

    def row(self, hosts: int, figure: str, name: str) -> str:
        """Return the row of a field of Sample.

        The growth is the median of the differences pair by pair: a machine that is slow for a
        while then is so on both sides.
        """
        near = [getattr(pair.near, figure) for pair in self.pairs]
        far = [getattr(pair.far, figure) for pair in self.pairs]
        grown = _median(map(operator.sub, far, near)) * 1000 / ROUND_TRIP_MS
        return (
            f"| {hosts} | {name} | {self.trips[figure]} | {_median(near):.2f} |"
            f" {_median(far):.2f} | {grown:.0f} |"
        )


def latency(group: Group) -> str:
    """Apply to one host and to all, near and far by turns, through the same proxy; the table."""
    rows = []
    for hosts, rounds in ((group.hosts[:1], _ROUNDS_OF_ONE), (group.hosts, _ROUNDS_OF_ALL)):
        cost = _cost(Group(group.fleet, hosts), rounds)
        rows.append(cost.row(len(hosts), "first", "first apply"))
        rows.append(cost.row(len(hosts), "again", "nothing to do"))
    head = f"| hosts | rlxdeploy | round trips | near, s | + {ROUND_TRIP_MS} ms, s | grown by |"
    told = (
        f"Near and far by turns, {_ROUNDS_OF_ONE} times with one host and {_ROUNDS_OF_ALL} with"
        " all; *grown by* is the median of the differences between runs that followed one another."
    )
    return "\n".join([head, "|---:|---|---:|---:|---:|---:|", *rows, "", told])


def many(group: Group) -> str:
    """Apply to more hosts than `forks` with the defaults, and return a sentence."""
    taken = sample(group, ours(group))
    return (
        f"{len(group.hosts)} hosts with the defaults: started after {taken.push:.2f} s, joined"
        f" after {taken.joined:.2f} s; with nothing to do {taken.again:.2f} s."
    )


def _cost(group: Group, rounds: int) -> Cost:
    """Take near and far by turns, and begin with either by turns too."""
    pairs, trips = list[Pair](), list[int]()
    for turn in range(rounds):
        order = (ROUND_TRIP_MS, 0) if turn % 2 else (0, ROUND_TRIP_MS)
        taken = {delay: _through(group, delay) for delay in order}
        far, trips = taken[ROUND_TRIP_MS]
        pairs.append(Pair(taken[0][0], far))
    count = len(group.hosts)
    return Cost(tuple(pairs), {"first": max(trips[:count]), "again": max(trips[count:])})


def _through(group: Group, milliseconds: int) -> tuple[Sample, list[int]]:
    """Return a sample through the proxy, and how many round trips each connection took."""
    trips = list[int]()
    with _proxied(group, milliseconds, trips):
        taken = sample(group, ours(group))
    return taken, trips


def _median(figures: Iterable[float]) -> float:
    return statistics.median(figures)


@contextmanager
def _proxied(group: Group, milliseconds: int, trips: list[int]) -> Iterator[None]:
    """Have the inventory's hosts be reached through a proxy that delays and counts round trips."""
    ports = {host: _FIRST_PORT + number for number, host in enumerate(group.hosts)}
    ways = (_WAY.format(name=h.name, port=port, address=h.address) for h, port in ports.items())
    (group.desk.folder / "far.conf").write_text("".join(ways), encoding="utf-8")
    group.write('[ssh]\nconfig = "far.conf"')
    routes = (f"{port}={host.address}:22" for host, port in ports.items())
    argv = (sys.executable, "-m", "bench.delay", str(milliseconds), *routes)
    with group.fleet.spawn(argv, env={"PYTHONPATH": str(_ROOT)}) as proxy:
        try:
            if not proxy.stdout or proxy.stdout.readline() != "ready\n":
                raise RuntimeError("the delaying proxy did not come up")
            yield
            time.sleep(_CLOSED_S)
        finally:
            os.killpg(proxy.pid, signal.SIGKILL)
            trips.extend(map(int, proxy.stdout.read().split() if proxy.stdout else ()))
            group.write()
