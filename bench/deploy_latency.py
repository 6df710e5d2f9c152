"""What distance costs an apply, and that more hosts than `forks` do: parts of `bench.deploy`."""

from __future__ import annotations

import os
import signal
import statistics
import sys
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
    """Seconds that a first apply and one without a change take, near and far."""

    near: tuple[float, float]
    far: tuple[float, float]

    def trips(self, which: int) -> float:
        """Return by how many round trips the far one is slower."""
        return (self.far[which] - self.near[which]) * 1000 / ROUND_TRIP_MS


def latency(group: Group) -> str:
    """Apply to one host and to all, near and far, through the same proxy; the table."""
    rows = []
    for hosts in (group.hosts[:1], group.hosts):
        cost = _cost(Group(group.fleet, hosts))
        for which, name in enumerate(("first apply", "nothing to do")):
            near, far = cost.near[which], cost.far[which]
            trips = cost.trips(which)
            rows.append(f"| {len(hosts)} | {name} | {near:.2f} | {far:.2f} | {trips:.0f} |")
    head = f"| hosts | rlxdeploy | near, s | + {ROUND_TRIP_MS} ms, s | round trips |"
    return "\n".join([head, "|---:|---|---:|---:|---:|", *rows])


def many(group: Group) -> str:
    """Apply to more hosts than `forks` with the defaults, and return a sentence."""
    taken = sample(group, ours(group))
    return (
        f"{len(group.hosts)} hosts with the defaults: started after {taken.push:.2f} s, joined"
        f" after {taken.joined:.2f} s; with nothing to do {taken.again:.2f} s."
    )


def _cost(group: Group) -> Cost:
    near, far = [], []
    for _ in range(_ROUNDS):
        for milliseconds, samples in ((0, near), (ROUND_TRIP_MS, far)):
            with _proxied(group, milliseconds):
                samples.append(sample(group, ours(group)))
    return Cost(_medians(near), _medians(far))


def _medians(samples: list[Sample]) -> tuple[float, float]:
    first = statistics.median(one.first for one in samples)
    return first, statistics.median(one.again for one in samples)


@contextmanager
def _proxied(group: Group, milliseconds: int) -> Iterator[None]:
    """Have the inventory's hosts be reached through a proxy that delays."""
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
        finally:
            os.killpg(proxy.pid, signal.SIGKILL)
            group.write()
