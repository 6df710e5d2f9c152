"""The collectives between two real hosts on a network of their own."""

from __future__ import annotations

import json
import secrets
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.table import Case, Done, Timing
from tests.fleet.harness.fleet import running_fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.spec import HostSpec

ROOT = Path(__file__).resolve().parent.parent
HOME = "/opt/bench"
# What bench.pair imports, and nothing that the hosts have not.
_CARRIED = ("__init__.py", "limit.py", "ours.py", "pair.py", "turns.py")
_WIRES = ("ours", "rlx")
_LIMIT_S = 300.0
_ABOUT = (
    "Two Debian 12 in network namespaces of their own, a bridge and two veth pairs between them; "
    "the machine's own congestion control for all. `ours` is the native wire."
)


def two_hosts(cases: Sequence[Case], rounds: int) -> Done:
    """Measure both wires, a rank on each host."""
    with running_fleet(lambda line: print(line, file=sys.stderr)) as fleet:
        hosts = fleet.hosts(HostSpec(), HostSpec())
        key = secrets.token_hex(32)
        for host in hosts:
            _furnish(host, key)
        addresses = [host.address for host in hosts]
        task = json.dumps([_WIRES, addresses, [list(case) for case in cases], rounds])
        with ThreadPoolExecutor() as pool:
            first, _ = list(pool.map(lambda rank: _rank(hosts[rank], rank, task), range(2)))
    read = json.loads(first)
    timings = [Timing(Case(*case), seconds) for case, seconds in read["timings"]]
    return Done("2 ranks on two hosts", _ABOUT, timings, read["limit"])


def _furnish(host: Host, key: str) -> None:
    package = host.at(f"{HOME}/rlxdeploy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "rlxdeploy/runtime", package / "runtime", ignore=ignored)
    shutil.copy(ROOT / "rlxdeploy/__init__.py", package)
    host.at(f"{HOME}/bench").mkdir()
    for name in _CARRIED:
        shutil.copy(ROOT / "bench" / name, host.at(f"{HOME}/bench"))
    host.write(f"{HOME}/key", key, mode=0o600)


def _rank(host: Host, rank: int, task: str) -> str:
    argv = ("env", "-C", HOME, "python3", "-m", "bench.pair", str(rank), f"{HOME}/key")
    return host.exec(argv, stdin=task, timeout=_LIMIT_S).stdout
