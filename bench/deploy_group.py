"""The hosts of `bench.deploy` as they stand: what they are to get, when their ranks started, reset.

Times are read from every host's own systemd.  All hosts share this machine's monotonic clock, so
no contender has to be watched, and none is slowed by being watched.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.fleet.desk import Desk
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until

JOB = "speed"
HOME = f"/var/lib/rlx/{JOB}"
UNIT_FILE = f"/etc/systemd/system/rlx-{JOB}@.service"

# The group has to form on two cores that all hosts share.
_JOINED_S = 120.0
_AT_ONCE = 8
# What one contender leaves running (sshd's children, a manager that tidies) is no other's burden.
_CALM_S = 2.0

_SHOWN = "ActiveState,MainPID,ExecMainStartTimestampMonotonic,ActiveEnterTimestampMonotonic"
_CLEAR = f"""\
systemctl stop 'rlx-{JOB}@*.service'
rm -rf {HOME} /run/rlx/{JOB} /etc/systemd/system/*.wants/rlx-{JOB}@* {UNIT_FILE}
systemctl daemon-reload
systemctl reset-failed
"""
# What the peers are given before their clock runs: the runtime and the key.
_PREPARE = """\
mkdir -p /var/lib/rlx/store {home}/current && cp /root/{archive} /var/lib/rlx/store/{archive} &&
umask 077 && echo {key} >{home}/key
"""


@dataclass(frozen=True)
class Part:
    """What one host is to have: its rank, the content of two files and the name of a third."""

    host: Host
    rank: int
    env: str
    unit: str
    archive: str

    @property
    def service(self) -> str:
        return f"rlx-{JOB}@{self.rank}.service"

    @property
    def env_file(self) -> str:
        return f"{HOME}/current/env/{self.rank}.env"


@dataclass(frozen=True)
class Began:
    """Seconds from a moment to the last rank's start and to the last READY; the processes."""

    push: float
    joined: float
    processes: tuple[int, ...]


class Group:
    """A job of one rank a host: its inventory on the controller, its files as rendered."""

    def __init__(self, fleet: Fleet, hosts: Sequence[Host]) -> None:
        self.fleet = fleet
        self.hosts = hosts
        self.desk = Desk(fleet, JOB)
        self.write()

    def write(self, tables: str = "") -> None:
        """Write the inventory, with *tables* besides the job and its nodes."""
        self.desk.write_hosts(self.hosts, tables=tables)

    @property
    def inventory(self) -> Path:
        return self.desk.folder / "inventory.toml"

    @cached_property
    def parts(self) -> list[Part]:
        """Every host's files as our own compiler renders them: all contenders start the same."""
        tree = self.desk.folder / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        self.desk.run("render", "--out", str(tree))
        return [self._part(tree / host.name, host, rank) for rank, host in enumerate(self.hosts)]

    def _part(self, tree: Path, host: Host, rank: int) -> Part:
        (archive,) = (tree / "var/lib/rlx/store").iterdir()
        host.at(f"/root/{archive.name}").write_bytes(archive.read_bytes())
        env = (tree / f"{HOME.lstrip('/')}/current/env/{rank}.env").read_text(encoding="utf-8")
        unit = (tree / UNIT_FILE.lstrip("/")).read_text(encoding="utf-8")
        return Part(host, rank, env, unit, archive.name)

    def began(self, since: float) -> Began:
        """Wait until every rank is READY, and return how long after *since* that was so."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            shown = list(pool.map(_ready, self.hosts, range(len(self.hosts))))
        starts = [int(unit["ExecMainStartTimestampMonotonic"]) / 1e6 for unit in shown]
        ready = [int(unit["ActiveEnterTimestampMonotonic"]) / 1e6 for unit in shown]
        pids = tuple(int(unit["MainPID"]) for unit in shown)
        return Began(max(starts) - since, max(ready) - since, pids)

    def clear(self, *, prepared: bool) -> None:
        """Leave nothing of the job anywhere; *prepared*: but what the peers are given."""
        scripts = dict.fromkeys(self.hosts, _CLEAR)
        for part in self.parts if prepared else ():
            scripts[part.host] += _PREPARE.format(home=HOME, archive=part.archive, key="0" * 64)
        shutil.rmtree(self.desk.folder / ".rlxdeploy", ignore_errors=True)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(_clear, scripts.items()))
        time.sleep(_CALM_S)


def _clear(task: tuple[Host, str]) -> None:
    host, script = task
    host.exec(("sh", "-c", script), check=False, timeout=_JOINED_S)


def _ready(host: Host, rank: int) -> dict[str, str]:
    shown: dict[str, str] = {}
    argv = ("systemctl", "show", "-p", _SHOWN, f"rlx-{JOB}@{rank}.service")

    def lacking() -> str:
        shown.update(line.split("=", 1) for line in host.exec(argv).stdout.splitlines())
        return "" if shown["ActiveState"] == "active" else f"READY of rank {rank}: {shown}"

    wait_until(lacking, _JOINED_S)
    return shown
