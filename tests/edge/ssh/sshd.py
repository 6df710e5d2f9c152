"""Real sshds on ports that the system picks, one process a connection, each with its own log."""

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin:/sbin")
_OFFER = re.compile(r"(?:Failed|Accepted) publickey for .* ssh2: \S+ (SHA256:\S+)")
_USER = re.compile(
    r"(?:invalid user|authenticating user|publickey for) (\S+) (?:from )?[\d.]+ port"
)

CONFIG = """\
HostKey {host_key}
AuthorizedKeysFile {authorized}
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxAuthTries 20
LogLevel VERBOSE
PidFile none
"""


_UP_S = 10.0


@dataclass(frozen=True)
class Login:
    """One connection as the server saw it: who came, and which keys it was shown, in order."""

    server: str
    user: str
    offered: tuple[str, ...]
    is_in: bool


@dataclass
class Visits:
    """The connections of all servers, in the order in which they came."""

    logs: list[tuple[str, Path, subprocess.Popen[bytes]]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> list[Login]:
        """Return what has come since the last call, once every connection has ended."""
        return [self._read(server, text) for server, text in self._texts()]

    def texts(self) -> list[str]:
        """Return the logs of what has come since the last call, as `take` waits for them."""
        return [text for _, text in self._texts()]

    def _texts(self) -> list[tuple[str, str]]:
        with self.lock:
            logs, self.logs = self.logs, []
        for _, _, process in logs:
            process.wait(10)
        return [(server, log.read_text()) for server, log, _ in logs]

    @staticmethod
    def _read(server: str, text: str) -> Login:
        user = _USER.search(text)
        offered = tuple(dict.fromkeys(_OFFER.findall(text)))
        return Login(server, user[1] if user else "", offered, "Accepted publickey" in text)


@dataclass(frozen=True)
class Sshd:
    """A server that runs: where it listens, and the key it shows."""

    name: str
    port: int
    host_key: str

    @property
    def known(self) -> str:
        return f"[127.0.0.1]:{self.port} {self.host_key}\n"


def need_sshd() -> None:
    """Skip the test where there is no sshd, or fail it where there has to be one."""
    if SSHD is None:
        need = "tests against the real ssh need sshd: see .ci/install-fleet"
        (pytest.fail if os.environ.get("FLEET") == "required" else pytest.skip)(need)


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def public_line(key: Path) -> str:
    return " ".join(key.with_name(f"{key.name}.pub").read_text().split()[:2])


@contextmanager
def running_sshd(folder: Path, name: str, authorized: list[Path], visits: Visits) -> Iterator[Sshd]:
    """Serve on 127.0.0.1 until the block ends; *authorized* keys are let in."""
    assert SSHD is not None
    host_key, config = _furnish(folder, name, authorized)

    def serve(connection: socket.socket) -> None:
        log = folder / f"{name}-{len(children)}.log"
        with visits.lock, log.open("wb") as stderr:
            command = [str(SSHD), "-i", "-e", "-f", str(config)]
            process = subprocess.Popen(
                command,
                stdin=connection.fileno(),
                stdout=connection.fileno(),
                stderr=stderr,
                start_new_session=True,
            )
            visits.logs.append((name, log, process))
            children.append(process)

    children: list[subprocess.Popen[bytes]] = []
    with listening(serve) as port:
        yield Sshd(name, port, public_line(host_key))
    for child in children:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait(10)


@contextmanager
def running_daemon(folder: Path, authorized: list[Path], more: str) -> Iterator[tuple[Sshd, Path]]:
    """Run one sshd that listens by itself, with *more* in its configuration; its log comes too."""
    host_key, config = _furnish(folder, "daemon", authorized)
    log = folder / "daemon.log"
    command = [str(SSHD), "-D", "-e", "-f", str(config)]
    with socket.socket() as held, log.open("wb") as stderr:
        # Bound and not listening, it keeps the port from all but sshd, which reuses it.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        with config.open("a") as file:
            file.write(f"ListenAddress 127.0.0.1:{port}\n{more}")
        process = subprocess.Popen(command, stderr=stderr, start_new_session=True)
        try:
            _await(lambda: "Server listening" in log.read_text(), "sshd to listen")
            yield Sshd("daemon", port, public_line(host_key)), log
        finally:
            process.terminate()
            process.wait(_UP_S)


@contextmanager
def running_agent(folder: Path, keys: list[Path]) -> Iterator[Path]:
    """Give the socket of an agent that holds *keys*."""
    path = folder / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    try:
        _await(path.exists, "ssh-agent to listen")
        held = {**os.environ, "SSH_AUTH_SOCK": str(path)}
        subprocess.run(["ssh-add", "-q", *map(str, keys)], env=held, check=True)
        yield path
    finally:
        agent.terminate()
        agent.wait(_UP_S)


def _furnish(folder: Path, name: str, authorized: list[Path]) -> tuple[Path, Path]:
    """Return the host key and the configuration of a new sshd."""
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd's own need; Debian's unit makes it too
    host_key = make_key(folder / f"{name}-host")
    keys = folder / f"{name}-authorized"
    keys.write_text("".join(f"{public_line(key)}\n" for key in authorized))
    config = folder / f"{name}-config"
    config.write_text(CONFIG.format(host_key=host_key, authorized=keys))
    return host_key, config


def _await(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _UP_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Call *serve* with each connection to a port of 127.0.0.1, which is given."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                serve(connection)

    thread = threading.Thread(target=accept, name="test server")
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)
