"""The bytes below SSH: a TCP connection or a ProxyCommand, as a real socket with a deadline."""

import os
import queue
import signal
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

from rlxdeploy.edge.ssh.failure import ProxyFailed
from rlxdeploy.edge.ssh.route import Hop
from rlxdeploy.facts.ssh_config import expand

_FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}
_LAST_WORDS_S = 0.5
_SAID = 1024

Address = tuple[socket.AddressFamily, tuple[object, ...]]


class CommandSocket:
    """A child's stdin and stdout as one socket; that the child closes its stdout is the end.

    One socket for both would stay open for as long as the child listens on its stdin: an `ssh -W`
    does, after the far end has hung up.
    """

    def __init__(self) -> None:
        self._to, self.stdin = socket.socketpair()
        self._from, self.stdout = socket.socketpair()
        self._closed = False  # paramiko asks for this name

    def settimeout(self, seconds: float | None) -> None:
        """Bound each `send` and `recv`, as a socket does."""
        self._to.settimeout(seconds)
        self._from.settimeout(seconds)

    def send(self, data: bytes) -> int:
        """Write what the child takes, see `socket.send`."""
        return self._to.send(data)

    def recv(self, size: int) -> bytes:
        """Read what the child has written, see `socket.recv`."""
        return self._from.recv(size)

    def close(self) -> None:
        """Hang up on the child."""
        self._closed = True
        self._to.close()
        self._from.close()


@dataclass(slots=True)
class Line:
    """A connected socket, and the ProxyCommand at its other end where there is one."""

    socket: socket.socket | CommandSocket
    _child: subprocess.Popen[bytes] | None = None
    _stderr: IO[bytes] | None = field(default=None, repr=False)

    @property
    def said(self) -> str:
        """What the ProxyCommand wrote to stderr, its end."""
        if self._stderr is None or self._stderr.closed:
            return ""
        size = os.fstat(self._stderr.fileno()).st_size
        piece = os.pread(self._stderr.fileno(), _SAID, max(size - _SAID, 0))
        return piece.decode(errors="replace").strip()

    @property
    def is_command(self) -> bool:
        return self._child is not None

    def has_failed(self) -> bool:
        """Tell whether the ProxyCommand, its stdout closed, ended with a status but 0.

        One that lives on, as an `ssh -W` does, has done its part: the far end hung up.
        """
        if self._child is None:
            return False
        with suppress(subprocess.TimeoutExpired):
            return self._child.wait(_LAST_WORDS_S) != 0
        return False

    def close(self) -> None:
        """Hang up, and end the ProxyCommand with all it started."""
        self.socket.close()
        if self._child is None or self._stderr is None or self._stderr.closed:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(_LAST_WORDS_S)
        self._stderr.close()


def dial(hop: Hop, patience: float, deadline: float) -> Line:
    """Return a line to *hop*; each address gets *patience* seconds, all of them the deadline.

    Raises OSError (gaierror, ConnectionRefusedError, TimeoutError …) or ProxyFailed.
    """
    if hop.resolved.proxy_command:
        return dial_command(expand(hop.resolved.proxy_command, hop.tokens))
    failure: OSError = TimeoutError("no time was left")
    for family, address in _addresses(hop, deadline):
        left = min(patience, deadline - time.monotonic())
        if left <= 0:
            break
        try:
            return Line(_connect(hop, family, address, left))
        except OSError as error:
            failure = error
    raise failure


def dial_command(command: str) -> Line:
    """Return a line to what *command* connects to, run by the user's shell as ssh does."""
    ours = CommandSocket()
    stderr = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the line
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        child = subprocess.Popen(  # noqa: S603  # ProxyCommand is a shell command by definition
            [shell, "-c", f"exec {command}"],
            stdin=ours.stdin.fileno(),
            stdout=ours.stdout.fileno(),
            stderr=stderr,
            start_new_session=True,
            env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"},
        )
    except OSError as error:
        ours.close()
        stderr.close()
        raise ProxyFailed(command, str(error)) from error
    finally:
        ours.stdin.close()
        ours.stdout.close()
    return Line(ours, child, stderr)


def _connect(
    hop: Hop, family: socket.AddressFamily, address: tuple[object, ...], left: float
) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(left)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hop.resolved.says("tcpkeepalive"):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if source := hop.resolved.one("bindaddress"):
            connection.bind((source, 0))
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


def _addresses(hop: Hop, deadline: float) -> list[Address]:
    """Look the name up; the resolver knows no deadline, so it is left behind at ours.

    An address is not asked about.
    """
    answers: queue.SimpleQueue[list[Address] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            answers.put(_looked_up(hop, 0))
        except OSError as error:
            answers.put(error)
        except UnicodeError as error:
            answers.put(socket.gaierror(socket.EAI_NONAME, str(error)))

    with suppress(OSError, UnicodeError):
        return _looked_up(hop, socket.AI_NUMERICHOST)
    name = hop.resolved.hostname
    threading.Thread(target=look_up, name=f"look up {name}", daemon=True).start()
    try:
        answer = answers.get(timeout=max(deadline - time.monotonic(), 0))
    except queue.Empty:
        raise socket.gaierror(socket.EAI_AGAIN, "the resolver gave no answer in time") from None
    if isinstance(answer, OSError):
        raise answer
    return answer


def _looked_up(hop: Hop, flags: int) -> list[Address]:
    family = _FAMILIES.get(hop.resolved.one("addressfamily"), socket.AF_UNSPEC)
    way = (hop.resolved.hostname, hop.resolved.port, family, socket.SOCK_STREAM, 0, flags)
    return [(entry[0], entry[4]) for entry in socket.getaddrinfo(*way)]
