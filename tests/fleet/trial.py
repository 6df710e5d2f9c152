"""One job on a few hosts, applied again and again while something goes wrong.

A trial begins from a whole group on one release, and ends with a whole group on that or on the
next: what lies between, and what was left behind, is what the tests ask about.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.desk import Desk
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until

REVERT_S = 40
TIMES = f"join_timeout = 38\nrevert_after = {REVERT_S}\n"
# After the timer a group has to stop and to form anew, on a machine that others use too.
SETTLED_S = REVERT_S + 90.0
_LATEST_S = 60.0

# What an apply goes through, by its journal.
STAGES = ("survey", "preflight", "stage", "go", "join", "confirm")

# What may not be there once a run is over, and which release stands.
_LEFT = r"""
cd /var/lib/rlx/{job} || exit
ls -d lock .revert releases/*.tmp *.new.* 2>/dev/null
find /etc/systemd/system -name 'rlx-{job}-revert.*'
echo current $(basename "$(readlink current)")
ls releases | sed 's/^/release /'
"""


@dataclass(frozen=True)
class Standing:
    """What a host shows of the job: its current release, all releases, and what is too much."""

    current: str
    releases: frozenset[str]
    left: tuple[str, ...]


def standing(host: Host, job: str) -> Standing:
    """Return what *host* shows of *job*."""
    lines = host.exec(("sh", "-c", _LEFT.format(job=job))).stdout.splitlines()
    words = [line.split(" ", 1) for line in lines]
    tagged = [pair for pair in words if pair[0] in ("current", "release")]
    return Standing(
        current=next(pair[1] for pair in tagged if pair[0] == "current"),
        releases=frozenset(pair[1] for pair in tagged if pair[0] == "release"),
        left=tuple(" ".join(pair) for pair in words if pair not in tagged),
    )


class Trial:
    """A group of built-in nodes whose inputs change with each release."""

    def __init__(self, fleet: Fleet, hosts: Sequence[Host], job: str) -> None:
        self.desk, self.hosts, self.number = Desk(fleet, job), hosts, 0
        self.write()
        self.desk.run("apply", "--yes")

    def write(self) -> None:
        """Make the next apply a new release for every rank, at other ports than the last."""
        self.number += 1
        job = f"{TIMES}env = {{ NUMBER = '{self.number}' }}\n"
        ports = f"[network]\ndata_port = {29500 + self.number % 2}\n"
        self.desk.write_hosts(self.hosts, job=job, tables=ports)

    def start(self) -> subprocess.Popen[str]:
        """Start an apply."""
        inventory = str(self.desk.folder / "inventory.toml")
        return self.desk.fleet.spawn(("rlxdeploy", "apply", inventory, "--yes"))

    @property
    def journal(self) -> Path:
        return self.desk.folder / ".rlxdeploy" / f"{self.desk.job}.journal"

    def events(self) -> list[dict[str, Any]]:
        """Return the events of the last run in the journal."""
        if not self.journal.exists():
            return []
        text = self.journal.read_text()
        whole = text.splitlines()[: text.count("\n")]
        told = [json.loads(line) for line in whole]
        return [event for event in told if event["run"] == told[-1]["run"]]

    def since(self, run: str) -> list[dict[str, Any]]:
        """Return the events of the run that came after *run*; none where there was none."""
        events = self.events()
        return [] if events[-1]["run"] == run else events

    def await_stage(self, run: str, wanted: str, process: subprocess.Popen[str]) -> None:
        """Wait until the apply that came after *run* is in the stage, or over."""
        deadline = time.monotonic() + _LATEST_S
        while stage_of(self.since(run)) != wanted and process.poll() is None:
            assert time.monotonic() < deadline, wanted
            time.sleep(0.001)

    def standings(self) -> list[Standing]:
        """Return what every host shows."""
        return [standing(host, self.desk.job) for host in self.hosts]

    def unsettled(self) -> str:
        """Say what lacks to one release on all hosts, nothing left over, and a whole group."""
        shown = self.standings()
        if any(one.left for one in shown) or len({one.current for one in shown}) != 1:
            return f"one release everywhere and nothing besides: {shown}"
        return self.desk.is_whole(len(self.hosts))

    def settle(self) -> str:
        """Wait until all have come to rest, and return the release that stands."""
        wait_until(self.unsettled, SETTLED_S)
        return self.standings()[0].current

    def finish(self) -> str:
        """Have the next apply bring what the last one did not, and return its release."""
        release: str = self.desk.json("apply", "--yes")["release"]
        assert self.unsettled() == ""
        return release


def stage_of(events: Sequence[dict[str, Any]]) -> str:
    """Return the stage that an apply is in, by what its journal has told so far."""
    stages = [event["stage"] for event in events if event["event"] == "stage"]
    if not events:
        return "survey"
    if events[-1]["event"] == "end":
        return "end"
    if "joined" in stages:
        return "confirm"
    if "join" in stages:
        return "join"
    if any(event.get("did") == "told to go" for event in events):
        return "go"
    return "stage" if any(one.startswith("preflight ") for one in stages) else "preflight"


def kill(process: subprocess.Popen[str]) -> None:
    """End *process* and all that it started, as `kill -9` does."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def tell(capsys: pytest.CaptureFixture[str], line: str) -> None:
    """Show whoever started a soak how far it is; the last line is for docs/soak.md."""
    with capsys.disabled():
        sys.stdout.write(f"\n{line}")
        sys.stdout.flush()
