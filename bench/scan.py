"""The scan of a /24 against nmap's connect scan, by turns: `python -m bench scan`.

It needs root and the packages of a fleet, for real hosts on a private network, and nmap.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.fleet.harness.fleet import Fleet, running_fleet
from tests.fleet.harness.needs import unmet_need

HOSTS = 24
RUNS = 20
SUBNET = "10.77.0.0/24"

# Ours is timed from the first connect to the last answer, as nmap times itself.
OURS = """
import sys
from ipaddress import ip_network
from rlxdeploy.edge.here import own_network
from rlxdeploy.edge.scan import scan
from rlxdeploy.facts.sweep import sweep
from rlxdeploy.model.host import Host
found = scan(sweep(ip_network(sys.argv[1]), own_network(Host("local"))))
print(found.seconds, *found.found)
"""
NMAP = ("nmap", "-sT", "-T5", "-n", "-p", "22", "--open", "-oG", "-", SUBNET)
_TOOK = re.compile(r"scanned in ([0-9.]+) seconds")
_UP = re.compile(r"^Host: (\S+) .*\b22/open/", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """One scan: seconds, and the addresses found."""

    seconds: float
    found: frozenset[str]


def unmet() -> str:
    """Return what this machine lacks for the benchmark; nothing where all is there."""
    return unmet_need() or ("" if shutil.which("nmap") else "nmap is not installed")


def run(hosts: int = HOSTS, runs: int = RUNS) -> str:
    """Scan a fleet of so many hosts by turns, and return the table.

    Raises RuntimeError where either scanner missed a host or found another: then the times of the
    two are not those of one task.
    """
    with running_fleet(lambda line: print(line, file=sys.stderr)) as fleet:
        up = frozenset(host.address for host in fleet.hosts(hosts))
        pairs = [(ours(fleet), nmap(fleet)) for _ in range(runs)]
    mine, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    for name, samples in (("rlxdeploy", mine), ("nmap", theirs)):
        check(name, samples, up)
    rows = [
        "| scanner | median s | fastest s | slowest s | hosts found in each run |",
        "|---|---:|---:|---:|---:|",
        _row("rlxdeploy", mine),
        _row("nmap -sT -T5 -n -p 22", theirs),
    ]
    ratio = _median(theirs) / _median(mine)
    told = f"{hosts} hosts up in {SUBNET}, {runs} runs by turns; {ratio:.1f} times as fast."
    told += f"\nBoth found the same {hosts} hosts in each run, and missed none."
    return "\n".join([*rows, "", told])


def ours(fleet: Fleet) -> Sample:
    """Scan with our own scanner, on the fleet's controller."""
    root = str(Path(__file__).parents[1])
    ran = fleet.controller((sys.executable, "-c", OURS, SUBNET), env={"PYTHONPATH": root})
    seconds, *found = said("rlxdeploy", ran).split()
    return Sample(float(seconds), frozenset(found))


def nmap(fleet: Fleet) -> Sample:
    """Scan with nmap, there too; it finds the controller itself as well, which does not count."""
    text = said("nmap", fleet.controller(NMAP))
    took = _TOOK.search(text)
    if took is None:
        raise RuntimeError(f"nmap did not say how long it took: {text}")
    return Sample(float(took[1]), frozenset(_UP.findall(text)) - {"10.77.0.1"})


def said(name: str, ran: subprocess.CompletedProcess[str]) -> str:
    """Return what a scanner printed; raise RuntimeError with its last words where it failed."""
    if ran.returncode:
        last = (ran.stderr.strip() or ran.stdout.strip() or "nothing").splitlines()[-1]
        raise RuntimeError(f"{name} ended with exit {ran.returncode} and said: {last}")
    return ran.stdout


def _median(samples: list[Sample]) -> float:
    return statistics.median(one.seconds for one in samples)


def check(name: str, samples: list[Sample], up: frozenset[str]) -> None:
    """Raise RuntimeError unless each run found those that are *up*, and nobody else."""
    for number, one in enumerate(samples, start=1):
        if one.found != up:
            missed = ", ".join(sorted(up - one.found)) or "nobody"
            strange = ", ".join(sorted(one.found - up)) or "nobody"
            raise RuntimeError(f"{name}, run {number}: missed {missed}, found besides {strange}")


def _row(name: str, samples: list[Sample]) -> str:
    seconds = [one.seconds for one in samples]
    fewest = min(len(one.found) for one in samples)
    return (
        f"| {name} | {_median(samples):.2f} | {min(seconds):.2f} | {max(seconds):.2f} | {fewest} |"
    )
