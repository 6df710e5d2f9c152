"""The controller: a user's shell on the lan, with a home of its own and nothing of this machine's.

It runs this machine's programs as root in the lan's namespace. /etc/passwd and /etc/hosts are
laid over with its own, so that OpenSSH, which does not ask HOME, finds this home too.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.fleet.harness.local import FleetError
from tests.fleet.harness.runs import cgroups
from tests.warm import Warm

# Joins the cgroup by which a killed run finds what it started, then enters the lan's namespace.
_ENTER = """\
for group in $1; do echo $$ >"$group/cgroup.procs"; done
namespace=$2 laid=$3 directory=$4
shift 4
exec ip netns exec "$namespace" sh -c "$laid" "$directory" "$@"
"""
_LAID_OVER = """\
mount --bind "$0/passwd" /etc/passwd && mount --bind "$0/hosts" /etc/hosts && exec "$@"
"""
_OUTPUT_S = 10.0


class Controller:
    """Starts commands on the lan as the user of the controller would."""

    def __init__(self, token: str, namespace: str, directory: Path) -> None:
        self._directory = directory
        self._namespace = namespace
        self.home = directory / "home"
        self.home.mkdir(parents=True, mode=0o700)
        (self.home / ".run").mkdir(mode=0o700)
        self._groups = cgroups(f"{token}/controller")
        for group in self._groups:
            group.mkdir(parents=True)
        self._write_passwd()
        self.know(())
        self._warm: Warm | None = None

    def know(self, hosts: Iterable[tuple[str, str]]) -> None:
        """Resolve these names to these addresses from now on, as /etc/hosts does."""
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        lines += [f"{address} {name}" for name, address in hosts]
        # In place: commands that run see the very file that was bound.
        (self._directory / "hosts").write_text("".join(f"{line}\n" for line in lines))

    def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        kept: Sequence[int] = (),
    ) -> subprocess.Popen[str]:
        """Start *argv* in the home directory, in a session of its own, its three ends piped.

        The descriptors *kept* are left open for it.
        """
        groups = " ".join(map(str, self._groups))
        where = (self._namespace, _LAID_OVER, str(self._directory))
        return subprocess.Popen(
            ("/bin/sh", "-c", _ENTER, "sh", groups, *where, *argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
            env=self._environment() | dict(env or {}),
            pass_fds=kept,
            start_new_session=True,
        )

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        timeout: float = 60.0,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run *argv* to its end, whatever its status; raise FleetError at the deadline."""
        if argv[0] == "rlxdeploy" and not stdin:
            return self._run_warm(argv[1:], timeout, self._environment() | dict(env or {}))
        with self.spawn(argv, env=env) as process:
            try:
                out, err = process.communicate(stdin, timeout)
            except subprocess.TimeoutExpired as late:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate(timeout=_OUTPUT_S)
                raise FleetError(f"{argv}: not finished after {timeout} s: {out}{err}") from late
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def _run_warm(
        self, arguments: Sequence[str], timeout: float, environ: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run our command without an interpreter's start for each of the many runs."""
        if self._warm is None:
            self._warm = Warm(lambda argv, kept: self.spawn(argv, kept=kept))
        try:
            return self._warm.run(arguments, environ=environ, folder=self.home, timeout=timeout)
        except subprocess.TimeoutExpired as late:
            said = f"{late.output!r}{late.stderr!r}"
            raise FleetError(f"{arguments}: not finished after {timeout} s: {said}") from late

    def close(self) -> None:
        """End what waits here for commands to run."""
        if self._warm is not None:
            self._warm.close()

    def _environment(self) -> dict[str, str]:
        home = self.home
        scripts = Path(sys.executable).parent
        return {
            "PATH": f"{scripts}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "USER": "root",
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "XDG_STATE_HOME": str(home / ".local/state"),
            "XDG_DATA_HOME": str(home / ".local/share"),
            "XDG_RUNTIME_DIR": str(home / ".run"),
        }

    def _write_passwd(self) -> None:
        lines = Path("/etc/passwd").read_text().splitlines()
        others = [line for line in lines if not line.startswith("root:")]
        root = f"root:x:0:0:root:{self.home}:/bin/bash"
        (self._directory / "passwd").write_text("".join(f"{line}\n" for line in [root, *others]))
