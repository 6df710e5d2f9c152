"""paramiko's transport, set up as `ssh -G` says, with two faults of its authentication mended.

It also knows when it last heard from the host, and keeps the reason for which it has ended.

The plain transport asks for the service anew before every key, which strict servers hang up on.
The one that does not waits for an answer on an event that it makes after it has asked (paramiko
5.1): a quick server's answer is then waited for in vain.
"""

import threading
import time
from collections.abc import Callable

from paramiko import Message, ServiceRequestingTransport, SSHException
from paramiko.auth_handler import AuthOnlyHandler
from paramiko.common import cMSG_GLOBAL_REQUEST, cMSG_USERAUTH_REQUEST
from paramiko.packet import Packetizer

from rlxdeploy.edge.ssh.failure import NoAgreement
from rlxdeploy.edge.ssh.route import Hop
from rlxdeploy.edge.ssh.terms import Terms

# While waiting for a packet: how long until we look whether the connection still stands.
_GLANCE_S = 0.1


class Transport(ServiceRequestingTransport):  # type: ignore[misc]  # paramiko has no types
    """A transport whose authentication loses no answer."""

    def __init__(self, sock: object, **options: object) -> None:
        super().__init__(sock, **options)
        self.packetizer = _Listener(self.sock)
        self.packetizer.set_log(self.logger)
        self._gave_up = ""

    @property
    def heard_at(self) -> float:
        """When the last packet came, a value of `time.monotonic()`."""
        return float(self.packetizer.heard_at)

    @property
    def ended_because(self) -> str:
        """Why the connection has ended, "" where nobody said."""
        return self._gave_up or str(self.saved_exception or "")

    def ask_for_a_sign(self) -> None:
        """Send what every server answers, if only by saying that it does not know it."""
        message = Message()
        message.add_byte(cMSG_GLOBAL_REQUEST)
        message.add_string("keepalive@openssh.com")
        message.add_boolean(True)  # noqa: FBT003  # the wire's want-reply
        self._send_user_message(message)

    def await_sign(self, deadline: float) -> None:
        """Ask for a sign and wait until anything comes; raise TimeoutError or SSHException."""
        self.packetizer.heard.clear()
        self.ask_for_a_sign()
        while not self.packetizer.heard.wait(_GLANCE_S):
            if time.monotonic() > deadline:
                raise TimeoutError("no answer in time")
            if not self.is_active():
                raise SSHException(self.ended_because or "the connection closed")

    def give_up(self, why: str) -> None:
        """Hang up, for the reason that `ended_because` then gives."""
        self._gave_up = why
        self.close()

    def get_exception(self) -> Exception | None:
        """Return why the connection has ended, as one of the errors that a connection may end with.

        What a host sends may make paramiko raise anything; that is the host's failure all the same.
        """
        error: Exception | None = super().get_exception()
        if error is not None and not isinstance(error, (SSHException, EOFError, OSError)):
            error = SSHException(f"it sent what nobody can read: {error}")
        return error

    def get_auth_handler(self) -> AuthOnlyHandler:
        """Return what `auth_publickey` and the like are carried out by."""
        return _Handler(self)


class _Listener(Packetizer):  # type: ignore[misc]  # paramiko has no types
    def __init__(self, sock: object) -> None:
        super().__init__(sock)
        self.heard_at = time.monotonic()
        self.heard = threading.Event()

    def read_message(self) -> tuple[int, Message]:
        packet: tuple[int, Message] = super().read_message()
        self.heard_at = time.monotonic()
        self.heard.set()
        return packet


class _Handler(AuthOnlyHandler):  # type: ignore[misc]  # paramiko has no types
    def send_auth_request(
        self, username: str, method: str, finish_message: Callable[[Message], object] | None = None
    ) -> list[str]:
        """Ask, and return what the server takes next; *finish_message* adds the method's fields."""
        self.auth_method = method
        self.username = username
        message = Message()
        message.add_byte(cMSG_USERAUTH_REQUEST)
        for field in (username, "ssh-connection", method):
            message.add_string(field)
        if finish_message:
            finish_message(message)
        self.auth_event = event = threading.Event()
        with self.transport.lock:
            self.transport._send_message(message)  # noqa: SLF001  # as the method this one replaces
        methods: list[str] = self.wait_for_response(event)
        return methods


def transport_for(hop: Hop, terms: Terms, sock: object, **options: object) -> Transport:
    """Return a transport that offers what the configuration allows, known key types first.

    Raises NoAgreement where paramiko knows nothing that is allowed.
    """
    transport = Transport(sock, **options)
    transport.handshake_timeout = terms.patience(hop)
    allowed = transport.get_security_options()
    allowed.kex = _among(allowed.kex, hop, "kexalgorithms")
    ciphers = _among(allowed.ciphers, hop, "ciphers")
    # paramiko compares the digest of each packet in Python, a fifth of all that it does; those
    # ciphers that are their own digest spare it that.
    allowed.ciphers = sorted(ciphers, key=lambda name: "-gcm@" not in name)
    allowed.digests = _among(allowed.digests, hop, "macs")
    kinds = _among(allowed.key_types, hop, "hostkeyalgorithms")
    known = [line.key for line in terms.known.about(hop)]
    is_known = {kind: any(key.allowed_by((kind,)) for key in known) for kind in kinds}
    allowed.key_types = sorted(kinds, key=lambda kind: not is_known[kind])
    return transport


def _among(ours: tuple[str, ...], hop: Hop, key: str) -> tuple[str, ...]:
    allowed = hop.resolved.listed(key)
    kept = tuple(name for name in ours if name in allowed)
    if not kept:
        raise NoAgreement(f"fabric knows none of {key} {','.join(allowed)}")
    return kept
