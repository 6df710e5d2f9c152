"""Real sshds on ports that the system picks, one process a connection, each with its own log."""

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

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
        with self.lock:
            logs, self.logs = self.logs, []
        return [self._read(*log) for log in logs]

    @staticmethod
    def _read(server: str, log: Path, process: subprocess.Popen[bytes]) -> Login:
        process.wait(10)
        text = log.read_text()
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
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd's own need; Debian's unit makes it too
    host_key = make_key(folder / f"{name}-host")
    keys = folder / f"{name}-authorized"
    keys.write_text("".join(f"{public_line(key)}\n" for key in authorized))
    config = folder / f"{name}-config"
    config.write_text(CONFIG.format(host_key=host_key, authorized=keys))

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
