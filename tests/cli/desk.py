"""A person's desk: a folder with inventories, a home of its own, and the real command."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.runtime.cluster import fresh_host
from tests.warm import READ_AT_START, warm

COMMAND = Path(sys.executable).parent / "rlxdeploy"
TIME_WAIT = "06"
EN_DASH = "\N{EN DASH}"
PATIENCE_S = 60.0
T = TypeVar("T")

# Two ranks of the built-in node, the least that is a group.
PAIR = """\
[job]
name = "demo"
launch = "process"
{job}
[[node]]
addr = "{host}:29500"
device = "cpu"
slots = 2
{node}
"""


@dataclass(frozen=True, slots=True)
class Done:
    """How one run of the command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout, whose first key is its version."""
        found: dict[str, Any] = json.loads(self.out)
        assert next(iter(found)) == "format_version"
        return found

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The documents of NDJSON on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]


class Desk:
    """Runs the command with folders and an address that nobody else uses."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.host = folder, fresh_host()
        self.lab, self.data, self.run_home = folder / "lab", folder / "data", folder / "run"
        for one in (self.lab, self.data, self.run_home, folder / "home"):
            one.mkdir(mode=0o700)
        self.environ = {
            "PATH": f"{COMMAND.parent}:{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "XDG_DATA_HOME": str(self.data),
            "XDG_RUNTIME_DIR": str(self.run_home),
            "LANG": "C.UTF-8",
        }
        self._started: list[subprocess.Popen[str]] = []

    def write(self, text: str, name: str = "inventory.toml") -> Path:
        path = self.lab / name
        path.write_text(text, encoding="utf-8")
        return path

    def pair(self, *, job: str = "", node: str = "", name: str = "inventory.toml") -> Path:
        """Write an inventory of two ranks, with more lines for its tables."""
        return self.write(PAIR.format(host=self.host, job=job, node=node), name)

    def run(self, *arguments: object, **environ: str) -> Done:
        """Run the command to its end, with no terminal."""
        if any(name.startswith(READ_AT_START) for name in environ):
            return self.run_cold(*arguments, **environ)
        done = warm().run(
            [*map(str, arguments)],
            environ={**self.environ, **environ},
            folder=self.lab,
            timeout=PATIENCE_S,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def run_cold(self, *arguments: object, **environ: str) -> Done:
        """Do so with an interpreter that starts for it, which takes ten times the processor."""
        done = subprocess.run(
            [COMMAND, *map(str, arguments)],
            cwd=self.lab,
            env={**self.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def good(self, *arguments: object, **environ: str) -> Done:
        """Run what has to succeed."""
        done = self.run(*arguments, **environ)
        assert done.code == 0, done
        return done

    def start(
        self, *arguments: object, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.PIPE
    ) -> subprocess.Popen[str]:
        """Start the command and let it run."""
        self._started.append(
            subprocess.Popen(
                [COMMAND, *map(str, arguments)],
                cwd=self.lab,
                env=self.environ,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        )
        return self._started[-1]

    def asked(self, terminal: tuple[int, int], *arguments: object) -> subprocess.Popen[str]:
        """Start the command on a terminal, and return once it asks whether to carry this out."""
        person, program = terminal
        process = self.start(*arguments, stdin=program, stderr=program)
        said = b""
        while b"Carry this out?" not in said:
            said += os.read(person, 4096)
        return process

    def status(self, inventory: object = "inventory.toml") -> dict[str, Any]:
        return self.good("status", "--json", inventory).document

    def records(self, job: str = "demo") -> dict[int, dict[str, Any]]:
        """What the supervisors say of themselves, by rank."""
        found = sorted((self.run_home / "rlx" / job).glob("*.supervisor"))
        return {int(path.stem): json.loads(path.read_text(encoding="utf-8")) for path in found}

    def pids(self, job: str = "demo") -> dict[int, int]:
        return {rank: int(record["pid"]) for rank, record in self.records(job).items()}

    def files(self) -> dict[str, tuple[int, int]]:
        """Every file and folder but the controller's own, with its inode and time of change."""
        return {
            str(path.relative_to(self.folder)): (path.lstat().st_ino, path.lstat().st_mtime_ns)
            for path in sorted(self.folder.rglob("*"))
            if ".rlxdeploy" not in path.parts
        }

    def left(self) -> list[int]:
        """The processes that have the desk's folders in their environment."""
        mark = f"XDG_DATA_HOME={self.data}\0".encode()
        return [pid for pid, environ in _environments() if mark in environ]

    def ports(self) -> set[int]:
        """The ports of the desk's address that a process holds."""
        table = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
        own = f"{int.from_bytes(socket.inet_aton(self.host), sys.byteorder):08X}"
        sockets = [line.split() for line in table]
        return {
            int(local.partition(":")[2], 16)
            for _, local, _, state, *_ in sockets
            if local.startswith(own) and state != TIME_WAIT
        }

    def close(self) -> None:
        """End all that was started here; what a failed test left is no other test's trouble."""
        for process in self._started:
            process.kill()
            process.communicate()
        for pid in self.left():
            _kill(pid)


def until(ask: Callable[[], T], seconds: float = 20.0) -> T:
    """Ask until the answer is true, and return it; what takes long is asked less often."""
    began = time.monotonic()
    deadline = began + seconds
    while not (answer := ask()):
        ended = time.monotonic()
        assert ended < deadline, "waited in vain"
        time.sleep(min(max(0.05, 2 * (ended - began)), 1.0))
        began = time.monotonic()
    return answer


def _environments() -> Iterator[tuple[int, bytes]]:
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            yield int(path.parent.name), path.read_bytes() + b"\0"
        except OSError:
            continue


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
