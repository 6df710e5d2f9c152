"""The session over a raw channel of paramiko's transport, see `edge.session`."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from paramiko import Channel

from rlxdeploy.edge.session import Session, SessionLost
from rlxdeploy.edge.ssh.alarms import Alarms
from rlxdeploy.model.host import Host

_PIECE = 1 << 15
_COMPLAINTS = 4096
# Output of one kind may arrive while we wait for the other: how long until we look again.
_GLANCE_S = 0.1
_LAST_WORDS_S = 0.5
# paramiko waits for the socket without end; past the deadline by this much we hang up on it.
_GRACE_S = 0.5
_ALARMS = Alarms()


@contextmanager
def hung_up_at(deadline: float, hang_up: Callable[[], object]) -> Iterator[None]:
    """Call *hang_up* if the block is still running a moment after *deadline*."""
    alarm = _ALARMS.at(max(deadline, time.monotonic()) + _GRACE_S, hang_up)
    try:
        yield
    finally:
        _ALARMS.call_off(alarm)


class ChannelSession(Session):
    """`Session` over a channel on which the bootstrap has been started."""

    def __init__(self, host: Host, channel: Channel) -> None:
        self._host = host
        self._channel = channel
        self._arrived = bytearray()
        self._tail = b""
        self._ended = False
        self._closed = False
        self._status: int | None = None

    @property
    def host(self) -> Host:
        """The machine at the other end."""
        return self._host

    @property
    def complaints(self) -> str:
        """The tail of stderr so far, and why the connection broke if it did."""
        self._take_stderr()
        said = self._tail.decode(errors="replace")
        lost = self._lost()
        return f"{said}{lost}" if lost else said

    def send(self, data: bytes, deadline: float) -> None:
        """Hand over all of *data*, see `Session.send`."""
        rest = memoryview(data)
        with hung_up_at(deadline, self._channel.transport.close):
            while rest:
                self._check(deadline, "to take what was sent")
                rest = rest[self._write(rest[:_PIECE]) :]
                self._take_stdout()
                self._take_stderr()

    def read(self, deadline: float) -> bytes:
        """Return what has arrived, see `Session.read`."""
        while not (self._arrived or self._ended):
            left = self._check(deadline, "to answer")
            self._receive(min(left, _GLANCE_S))
            self._take_stderr()
        piece = bytes(self._arrived)
        self._arrived.clear()
        return piece

    def close(self) -> int | None:
        """Close the channel, see `Session.close`; the server ends the shell."""
        if self._closed:
            return self._status
        self._closed = True
        if self._ended:
            self._channel.status_event.wait(_LAST_WORDS_S)
        if self._channel.exit_status_ready():
            status = self._channel.recv_exit_status()
            self._status = status if status >= 0 else None
        self._take_stderr()
        with (
            hung_up_at(time.monotonic(), self._channel.transport.close),
            suppress(OSError, EOFError),
        ):
            self._channel.close()
        return self._status

    def _check(self, deadline: float, what: str) -> float:
        """Return the seconds left; raise TimeoutError if there are none."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{self._host.name}: waited in vain for the shell {what}")
        return left

    def _write(self, piece: memoryview) -> int:
        self._channel.settimeout(_GLANCE_S)
        try:
            return int(self._channel.send(bytes(piece)))
        except TimeoutError:
            return 0
        except (OSError, EOFError) as error:
            self._take_stderr()
            said = self.complaints.strip()
            why = "the shell has ended" + (f": {said}" if said else "")
            raise SessionLost(self._host.name, "send", why) from error

    def _receive(self, patience: float) -> None:
        """Wait for stdout; take in what there is, or note that it has ended."""
        self._channel.settimeout(patience)
        with suppress(TimeoutError):
            piece = self._channel.recv(_PIECE)
            self._ended = not piece
            self._arrived += piece

    def _take_stdout(self) -> None:
        while self._channel.recv_ready():
            self._receive(_GLANCE_S)

    def _take_stderr(self) -> None:
        while self._channel.recv_stderr_ready():
            self._tail = (self._tail + self._channel.recv_stderr(_PIECE))[-_COMPLAINTS:]

    def _lost(self) -> str:
        transport = self._channel.transport
        if transport.is_active() or self._closed:
            return ""
        reason = transport.ended_because
        return f"the connection broke: {reason}" if reason else "the connection broke"
