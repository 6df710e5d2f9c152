"""One machine: its disk, its power and what can be seen inside it.

The disk is an overlay over the release's base image, on a small filesystem of its own. The
machine is a systemd-nspawn container with systemd as PID 1, or with sshd and nothing else.
"""

import os
import signal
import stat
import subprocess
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from tests.fleet.harness.layer import written
from tests.fleet.harness.local import FleetError, run, wait_until
from tests.fleet.harness.runs import cgroups, drop_cgroup, members
from tests.fleet.harness.spec import HostSpec

# Six hosts boot in two seconds on two idle cores, which a test run hardly ever has to itself.
BOOT_S = 90.0
OFF_S = 30.0
_DISK = "256m"
_FUSE = Path("/dev/fuse")
_TIMED_OUT = 124
_SSH_LISTENS = (":0016", "0A")

_NAMESPACES = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_INSIDE = {"PATH": _PATH, "HOME": "/root", "LANG": "C.UTF-8"}

# A killed nspawn leaves the lock on its directory behind, which nobody else has an eye on.
_UNLOCKED = {"SYSTEMD_NSPAWN_LOCK": "0"}

# Hosts that share a cgroup would take each other's services for their own. Under --keep-unit a
# reboot ends nspawn with 133, and a power switch that is still on starts the machine again.
_POWER = """\
for group in $1; do echo $$ >"$group/cgroup.procs"; done; shift
while "$@"; status=$?; [ $status = 133 ]; do :; done
exit $status
"""
_SSHD_ALONE = "fleet-sysfs && mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e"


class Machine:
    """A Debian machine with a name and a namespace for its network, and no ties to others."""

    def __init__(self, spec: HostSpec, token: str, directory: Path) -> None:
        self.name = spec.name
        self.spec = spec
        self.root = directory / "root"
        self.namespace = f"{token}-{spec.name}"
        self._cgroup = f"{token}/{spec.name}"
        self._disk = directory
        self._base: Path
        self._console = directory / "console.log"
        self._power: subprocess.Popen[bytes] | None = None

    def furnish(self, base: Path) -> None:
        """Make the disk: the image *base* less what the host is to lack, and a name of its own."""
        self._base = base
        self._disk.mkdir(parents=True)
        tmpfs = ("mount", "-t", "tmpfs", "-o", f"size={_DISK},mode=755", self.namespace)
        run((*tmpfs, str(self._disk)))
        upper, work = self._disk / "upper", self._disk / "work"
        for path in (upper, work, self.root):
            path.mkdir()
        for pattern in self.spec.absent():
            for path in base.glob(pattern):
                _white_out(upper / path.relative_to(base))
        layers = f"lowerdir={base},upperdir={upper},workdir={work}"
        run(("mount", "-t", "overlay", "-o", layers, self.namespace, str(self.root)))
        self.write("/etc/hostname", f"{self.name}\n")
        self.write("/etc/hosts", f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {self.name}\n")
        self.write("/etc/machine-id", f"{uuid.uuid4().hex}\n", mode=0o444)

    def scrap(self) -> None:
        """Cut the power and take the disk away."""
        self._cut()
        drop_cgroup(self._cgroup)
        for point in (self.root, self._disk):
            run(("umount", "--lazy", str(point)))
        self._disk.rmdir()

    def at(self, path: str) -> Path:
        """Return where the absolute *path* lies from here; /run, /tmp and /dev are not on disk."""
        return self.root / path.lstrip("/")

    def written(self, below: str) -> list[str]:
        """Tell of all below the absolute path *below* that is not as in the image."""
        return [*written(self._base, self._disk / "upper", below)]

    def write(self, path: str, text: str, *, mode: int = 0o644, user: str = "root") -> None:
        """Put a file on the disk, whether the power is on or off, as *user*'s own."""
        file = self.at(path)
        new = [folder for folder in file.parents if not folder.exists()]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        owner = self.at(home(user)).stat()
        for made in (*new, file):
            os.chown(made, owner.st_uid, owner.st_gid)

    def exec(
        self, argv: Sequence[str], *, stdin: str = "", timeout: float = 30.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run *argv* inside as root, past SSH; raise FleetError if it, or the power, is off."""
        enter = ("nsenter", "--target", str(self.pid1()), *_NAMESPACES, "--")
        return run((*enter, *argv), stdin=stdin, timeout=timeout, env=_INSIDE, check=check)

    def dial(self, address: str, port: int = 22) -> Literal["connected", "refused", "silent"]:
        """Say what becomes of a TCP connection from here within a second; no route is refusal."""
        connect = f"exec 3<>/dev/tcp/{address}/{port}"
        status = self.exec(("timeout", "1", "bash", "-c", connect), check=False).returncode
        return "silent" if status == _TIMED_OUT else "refused" if status else "connected"

    def journal(self, *options: str) -> str:
        """Return the journal of all boots; *options* narrow it as journalctl's own do."""
        return self.exec(("journalctl", "--no-pager", "--output=short-iso", *options)).stdout

    def sshd_log(self) -> str:
        """Return what sshd has logged, at level VERBOSE."""
        return self.journal("--unit=ssh") if self.spec.systemd else self.console()

    def console(self) -> str:
        """Return what the boots, or sshd where it is alone, wrote on the console."""
        return self._console.read_text(errors="replace") if self._console.exists() else ""

    def is_on(self) -> bool:
        """Say whether the power is on, whatever the system makes of it."""
        return self._power is not None and self._power.poll() is None

    def pid1(self) -> int:
        """Return the host's PID 1 as this machine numbers it."""
        if pid := self._find_pid1():
            return pid
        raise FleetError(f"{self.name} is off")

    def start(self) -> None:
        """Switch the power on; `await_up` waits for the rest."""
        groups = cgroups(self._cgroup)
        for group in groups:
            group.mkdir(parents=True, exist_ok=True)
        argv = ("sh", "-c", _POWER, "sh", " ".join(map(str, groups)), *self._nspawn())
        with self._console.open("ab") as console:
            self._power = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                env=os.environ | _UNLOCKED,
                start_new_session=True,
            )

    def await_up(self, *, after: int = 0) -> None:
        """Wait until sshd listens and the boot is over, under another PID 1 than *after*."""
        try:
            wait_until(lambda: self._lacking(after), BOOT_S)
        except FleetError as why:
            raise FleetError(f"{self.name}: {why}\n{self.console()[-2000:]}") from why

    def note_end(self) -> None:
        """Take note that the whole run has been ended from outside, this machine with it."""
        if self._power is not None:
            self._power.wait(OFF_S)

    def power_off(self) -> None:
        """Shut the system down in good order and wait until the power is off."""
        goodbye = ("systemctl", "poweroff")
        self.exec(goodbye if self.spec.systemd else _signal_sshd("TERM"), check=False)
        wait_until(lambda: "the end of the shutdown" if self.is_on() else "", OFF_S)

    def reboot(self) -> None:
        """Restart the system in good order and wait until it is up again."""
        if not self.spec.systemd:
            raise FleetError(f"{self.name} has no init to reboot; switch it off and on")
        before = self.pid1()
        self.exec(("systemctl", "reboot"), check=False)
        self.await_up(after=before)

    def restart_sshd(self) -> None:
        """Make sshd read its configuration and its keys again."""
        restart = ("systemctl", "restart", "ssh")
        self.exec(restart if self.spec.systemd else _signal_sshd("HUP"))
        self.await_up()

    def kill(self) -> None:
        """Begin to end all processes at one blow; the kernel still closes their connections."""
        # PID 1 takes the rest along; killing nspawn instead would leave the rest running.
        if pid := self._find_pid1():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _cut(self) -> None:
        wait_until(self._killed, OFF_S)

    def _killed(self) -> str:
        self.kill()
        return "the end of its processes" if self.is_on() else ""

    def _lacking(self, before: int) -> str:
        if not self.is_on():
            raise FleetError("the container has ended")
        pid = self._find_pid1()
        if pid in (0, before):
            return "a PID 1"
        if not _listens(pid):
            return "a listening sshd"
        if not self.spec.systemd:
            return ""
        asked = self.exec(("systemctl", "is-active", "multi-user.target"), check=False)
        return "" if asked.stdout == "active\n" else "multi-user.target"

    def _find_pid1(self) -> int:
        return next((pid for pid in members(self._cgroup) if _is_pid1(pid)), 0)

    def _nspawn(self) -> tuple[str, ...]:
        command = ("--boot",) if self.spec.systemd else ("--as-pid2", "sh", "-c", _SSHD_ALONE)
        return (
            *("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--console=pipe"),
            *("--link-journal=no", "--resolv-conf=off", "--timezone=off"),
            *((f"--bind={_FUSE}",) if _FUSE.exists() else ()),
            *(f"--machine={self.namespace}", f"--hostname={self.name}"),
            *(f"--network-namespace-path=/run/netns/{self.namespace}", f"--directory={self.root}"),
            *command,
        )


def home(user: str) -> str:
    """Return the home directory of one of the hosts' users."""
    return "/root" if user == "root" else f"/home/{user}"


def _white_out(path: Path) -> None:
    """Hide *path* of the layer below, the way overlayfs writes it itself."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))


def _signal_sshd(name: str) -> tuple[str, ...]:
    return ("sh", "-c", f'kill -{name} "$(cat /run/sshd.pid)"')


def _is_pid1(pid: int) -> bool:
    status = _read(Path(f"/proc/{pid}/status"))
    numbers = next((line.split()[1:] for line in status if line.startswith("NSpid:")), [])
    return len(numbers) == 2 and numbers[1] == "1"


def _listens(pid: int) -> bool:
    rows = (line.split() for line in _read(Path(f"/proc/{pid}/net/tcp"))[1:])
    return any(row[1].endswith(_SSH_LISTENS[0]) and row[3] == _SSH_LISTENS[1] for row in rows)


def _read(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:  # the process has just gone
        return []
