"""What distance costs an apply, and that more hosts than `forks` do: parts of `bench.deploy`."""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.deploy_contenders import ours
from bench.deploy_group import Group
from bench.deploy_sample import Sample, sample

ROUND_TRIP_MS = 50
_ROUNDS = 2
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
class Cost:
    """Seconds that a first apply and one without a change take, near and far.

    *trips* are the round trips of each, as the proxy counts them on the connection with the most.
    """

    near: tuple[float, float]
    far: tuple[float, float]
    trips: tuple[int, int]


def latency(group: Group) -> str:
    """Apply to one host and to all, near and far, through the same proxy; the table."""
    rows = []
    for hosts in (group.hosts[:1], group.hosts):
        cost = _cost(Group(group.fleet, hosts))
        for which, name in enumerate(("first apply", "nothing to do")):
            near, far = cost.near[which], cost.far[which]
            grown = (far - near) * 1000 / ROUND_TRIP_MS
            rows.append(
                f"| {len(hosts)} | {name} | {cost.trips[which]} | {near:.2f} | {far:.2f} |"
                f" {grown:.0f} |"
            )
    head = f"| hosts | rlxdeploy | round trips | near, s | + {ROUND_TRIP_MS} ms, s | grown by |"
    return "\n".join([head, "|---:|---|---:|---:|---:|---:|", *rows])


def many(group: Group) -> str:
    """Apply to more hosts than `forks` with the defaults, and return a sentence."""
    taken = sample(group, ours(group))
    return (
        f"{len(group.hosts)} hosts with the defaults: started after {taken.push:.2f} s, joined"
        f" after {taken.joined:.2f} s; with nothing to do {taken.again:.2f} s."
    )


def _cost(group: Group) -> Cost:
    near, far, trips = list[Sample](), list[Sample](), list[int]()
    for _ in range(_ROUNDS):
        with _proxied(group, 0, []):
            near.append(sample(group, ours(group)))
        trips.clear()
        with _proxied(group, ROUND_TRIP_MS, trips):
            far.append(sample(group, ours(group)))
    count = len(group.hosts)
    return Cost(_medians(near), _medians(far), (max(trips[:count]), max(trips[count:])))


def _medians(samples: list[Sample]) -> tuple[float, float]:
    first = statistics.median(one.first for one in samples)
    return first, statistics.median(one.again for one in samples)


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
