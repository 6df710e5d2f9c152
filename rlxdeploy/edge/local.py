"""The session over a child in a process group of its own; on this machine that is a shell."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from rlxdeploy.edge.session import BOOTSTRAP, Session, SessionLost
from rlxdeploy.errors import Unreachable
from rlxdeploy.model.host import Host

_PIECE = 1 << 16
# The end of stderr that a message shows; enough for a shell's last words.
_COMPLAINTS = 4096
# A shell that has closed its output gets this long to say its exit status.
_LAST_WORDS_S = 0.5


def open_local(
    host: Host, deadline: float, without: frozenset[str] = frozenset()
) -> "LocalSession":
    """Open a session on the controller, *without* these variables of our own environment.

    The *deadline* is not needed for a fork.
    """
    del deadline
    return LocalSession(host, without=without)


class ChildSession(Session):
    """`Session` over the pipes of a child, which is *argv*; *environ* None is our own."""

    def __init__(
        self, host: Host, argv: Sequence[str], environ: Mapping[str, str] | None = None
    ) -> None:
        self._host = host
        try:
            self._child = subprocess.Popen(  # noqa: S603  # an argument vector, by design a shell
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd="/",
                env=environ,
                start_new_session=True,
            )
        except OSError as error:
            raise Unreachable(host.name, "start a shell", str(error)) from error
        pipes = (self._child.stdin, self._child.stdout, self._child.stderr)
        self._stdin, self._stdout, self._stderr = (p.fileno() for p in pipes if p is not None)
        self._arrived = bytearray()
        self._tail = b""
        self._closed = False
        self._status: int | None = None
        self._waiting = selectors.DefaultSelector()
        for descriptor in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(descriptor, False)
        for descriptor in (self._stdout, self._stderr):
            self._waiting.register(descriptor, selectors.EVENT_READ)

    @property
    def host(self) -> Host:
        """The machine at the other end."""
        return self._host

    @property
    def complaints(self) -> str:
        """The tail of stderr so far."""
        return self._tail.decode(errors="replace")

    def has_failed(self, status: int) -> bool:
        """Tell whether the child has closed its output and ended with *status*."""
        if self._stdout in self._waiting.get_map():
            return False
        with suppress(subprocess.TimeoutExpired):
            return self._child.wait(_LAST_WORDS_S) == status
        return False

    def send(self, data: bytes, deadline: float) -> None:
        """Hand over all of *data*, see `Session.send`."""
        self._waiting.register(self._stdin, selectors.EVENT_WRITE)
        lost: BrokenPipeError | None = None
        try:
            self._push(memoryview(data), deadline)
        except BrokenPipeError as error:
            lost = error
        finally:
            self._waiting.unregister(self._stdin)
        if lost:
            self._hear_out()
            why = f"the shell has ended: {self.complaints.strip() or 'it said nothing'}"
            raise SessionLost(self._host.name, "send", why) from lost

    def read(self, deadline: float) -> bytes:
        """Return what has arrived, see `Session.read`."""
        while not self._arrived and self._stdout in self._waiting.get_map():
            self._await(deadline, "to answer")
        piece = bytes(self._arrived)
        self._arrived.clear()
        return piece

    def close(self) -> int | None:
        """Kill what is left, see `Session.close`."""
        if self._closed:
            return self._status
        self._closed = True
        if self._stdout not in self._waiting.get_map():
            with suppress(subprocess.TimeoutExpired):
                self._status = self._child.wait(_LAST_WORDS_S)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(_LAST_WORDS_S)
        self._waiting.close()
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            if pipe is not None:
                pipe.close()
        return self._status

    def _await(self, deadline: float, what: str) -> None:
        """Wait for any of the pipes, and take in what the child has written."""
        left = deadline - time.monotonic()
        ready = self._waiting.select(left) if left > 0 else []
        if not ready:
            raise TimeoutError(f"{self._host.name}: waited in vain for the shell {what}")
        for key, _ in ready:
            if key.fd != self._stdin:
                self._take(key.fd)

    def _take(self, descriptor: int) -> None:
        piece = os.read(descriptor, _PIECE)
        if not piece:
            self._waiting.unregister(descriptor)
        elif descriptor == self._stdout:
            self._arrived += piece
        else:
            self._tail = (self._tail + piece)[-_COMPLAINTS:]

    def _push(self, rest: memoryview, deadline: float) -> None:
        while rest:
            self._await(deadline, "to take what was sent")
            with suppress(BlockingIOError):
                rest = rest[os.write(self._stdin, rest[:_PIECE]) :]

    def _hear_out(self) -> None:
        """Take in what a child that reads no more still has to say on stderr."""
        deadline = time.monotonic() + _LAST_WORDS_S
        with suppress(TimeoutError):
            while self._stderr in self._waiting.get_map():
                self._await(deadline, "to end")


class LocalSession(ChildSession):
    """`Session` on the controller; *shell* is the argv that `-c BOOTSTRAP` is appended to."""

    def __init__(
        self,
        host: Host,
        shell: tuple[str, ...] = ("/bin/sh",),
        without: frozenset[str] = frozenset(),
    ) -> None:
        environ = {name: value for name, value in os.environ.items() if name not in without}
        super().__init__(host, [*shell, "-c", BOOTSTRAP], environ)
