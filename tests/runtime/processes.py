"""Real processes that are ranks, and the manager they report to."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Sequence

from tests.runtime.cluster import PATIENCE_S, environment, fresh_host, peers_on


class Manager:
    """What systemd is to a service: a datagram socket, by path or abstract."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self.heard: List[str] = []

    def wait_for(self, line: str, seconds: float = PATIENCE_S) -> bool:
        """Whether *line* is or comes within *seconds*."""
        deadline = time.monotonic() + seconds
        while line not in self.heard:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._sock.settimeout(left)
            try:
                self.heard += self._sock.recv(4096).decode().splitlines()
            except OSError:  # a timeout, under its old name on Python 3.9
                return False
        return True

    def forget(self) -> None:
        """Start anew: what was heard so far is not waited for again."""
        self._sock.settimeout(0)
        try:
            while True:
                self._sock.recv(4096)
        except BlockingIOError:
            self.heard = []

    def close(self) -> None:
        self._sock.close()


class Rank:
    """One started node."""

    def __init__(self, environ: Dict[str, str], folder: Path, *arguments: str) -> None:
        name = environ["RANK"]
        self.state_file = folder / f"{name}.state"
        # Linux tells abstract addresses apart by their bytes alone: the folder makes them unique.
        self.manager = Manager(f"@{folder}/{name}" if int(name) % 2 else str(folder / name))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rlxdeploy.runtime", *arguments],
            env={
                **os.environ,
                "NOTIFY_SOCKET": self.manager.address,
                "RLX_STATE_FILE": str(self.state_file),
                **environ,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def state(self) -> Dict[str, Any]:
        content: Dict[str, Any] = json.loads(self.state_file.read_text(encoding="utf-8"))
        return content

    def ready(self) -> bool:
        return self.manager.wait_for("READY=1")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, seconds: float = PATIENCE_S) -> Ended:
        """Wait for the end and return what is left."""
        out, err = self.process.communicate(timeout=seconds)
        return Ended(self.process.returncode, out, err)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.manager.close()


class Ended:
    """How a rank ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def __repr__(self) -> str:
        return f"code {self.code}\n{self.out}\n{self.err}"


class Fleet:
    """Ranks that share a list of peers and a folder."""

    def __init__(self, folder: Path, world: int, topology: str = "mesh", **more: str) -> None:
        self.folder, self.topology, self.more = folder, topology, more
        self.peers = peers_on(fresh_host(), world)
        self.started: List[Rank] = []

    def start(self, rank: int, *arguments: str, **more: str) -> Rank:
        """Start one rank; a rank started before must have ended."""
        folder = self.folder / str(len(self.started))
        folder.mkdir()
        environ = {**environment(rank, self.peers, self.topology), **self.more, **more}
        self.started.append(Rank(environ, folder, *arguments))
        return self.started[-1]

    def start_all(self, *arguments: str) -> Sequence[Rank]:
        return [self.start(rank, *arguments) for rank in range(len(self.peers))]

    def close(self) -> None:
        for rank in self.started:
            rank.close()
