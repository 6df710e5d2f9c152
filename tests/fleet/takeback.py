"""A group that stands on one release and is given others, and what shows that it is back."""

import os
import signal
import subprocess

from tests.fleet.desk import RUN_S, Desk, to_be_whole
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until

BACK_S = 25
# Long enough for a group of hosts that share two cores to join in, and to be killed in.
_TIMES = f"join_timeout = 20\nrevert_after = {BACK_S}\n"
HEALED_S = BACK_S + 90.0
# All inputs of a release are as before but for this.
MORE = "env = { MORE = '1' }\n"

PORT, NEXT_PORT = 29500, 29510
# Far more than it takes to see that two ranks that are up cannot reach one another.
_PATIENT_S = 90

LOGINS = {"systemd": "root", "systemd-user": "nosudo", "process": "root"}

_TIMERS = r"""
find / -xdev -path /usr -prune -o \
  \( -name 'rlx-*-revert.*' -o -path '*/.revert/timer' \) -print
"""


class Job:
    """A job under one launch, applied once when it is made; *release* is what it stands on."""

    def __init__(self, fleet: Fleet, hosts: list[Host], launch: str, name: str) -> None:
        self.desk, self.hosts, self.launch = Desk(fleet, name), hosts, launch
        self.write()
        self.desk.run("apply", "--yes")
        (self.release,) = self.releases()

    def write(self, job: str = "", port: int = PORT) -> None:
        """Have the next apply bring the release before, or another by keys of `[job]` or a port."""
        keys = f'launch = "{self.launch}"\n{_TIMES}{job}'
        tables = f'[ssh]\nuser = "{LOGINS[self.launch]}"\n[network]\ndata_port = {port}\n'
        self.desk.write_hosts(self.hosts, job=keys, tables=tables)

    def releases(self) -> set[str]:
        """Return what the ranks run under, by `status`."""
        return {rank["release"] for rank in self.desk.ranks()}

    def start(self) -> subprocess.Popen[str]:
        """Start an apply."""
        inventory = str(self.desk.folder / "inventory.toml")
        return self.desk.fleet.spawn(("rlxdeploy", "apply", inventory, "--yes"))

    def back(self, *release: str) -> None:
        """Go back by hand."""
        inventory = str(self.desk.folder / "inventory.toml")
        argv = ("rlxdeploy", "rollback", *release, "-i", inventory, "--yes")
        ran = self.desk.fleet.controller(argv, timeout=RUN_S)
        assert ran.returncode == 0, ran

    def stands(self) -> str:
        """Say what lacks to be whole on its release, with no way back open anywhere."""
        if waiting := [host.name for host in self.hosts if timers(host)]:
            return f"no timer on {waiting}"
        ranks = self.desk.ranks()
        if (shown := {rank["release"] for rank in ranks}) != {self.release}:
            return f"release {self.release}, not {shown}"
        return to_be_whole(ranks, len(self.hosts))

    def is_cut_off(self, port: int) -> str:
        """Apply what rank 1 lets nobody join at *port*, and return what a person reads.

        The port stays blocked.
        """
        self.write(MORE, port)
        walled, caller = self.hosts[1:]
        walled.firewall("DROP", port=port)
        arguments = ("--yes", "--no-preflight", f"--join-timeout={_PATIENT_S}")
        said = self.desk.run("apply", *arguments, code=3).stderr
        ends = f"cannot reach rank 1 on {walled.name}, which is up: dialled {walled.address}:{port}"
        assert f"rank 2 on {caller.name} at {caller.address}:{port}: it {ends}: " in said
        assert f"the group did not form (after {_PATIENT_S}" not in said
        return said


def timers(host: Host) -> str:
    """Return the revert timers on a host, in every tree: units, or the note of a process."""
    return host.exec(("sh", "-c", _TIMERS)).stdout


def armed(hosts: list[Host]) -> None:
    """Wait until every host has been told to go, and so has a way back."""
    wait_until(lambda: "" if all(map(timers, hosts)) else "timers on all hosts", 60)


def kill(apply: subprocess.Popen[str]) -> None:
    """Take the controller away for good."""
    os.killpg(apply.pid, signal.SIGKILL)
    apply.communicate()
