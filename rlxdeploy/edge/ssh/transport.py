"""paramiko's transport, set up as `ssh -G` says, with two faults of its authentication mended.

The plain transport asks for the service anew before every key, which strict servers hang up on.
The one that does not waits for an answer on an event that it makes after it has asked (paramiko
5.1): a quick server's answer is then waited for in vain.
"""

import threading
from collections.abc import Callable

from paramiko import Message, ServiceRequestingTransport
from paramiko.auth_handler import AuthOnlyHandler
from paramiko.common import cMSG_USERAUTH_REQUEST

from rlxdeploy.edge.ssh.failure import NoAgreement
from rlxdeploy.edge.ssh.route import Hop
from rlxdeploy.edge.ssh.terms import Terms


class Transport(ServiceRequestingTransport):  # type: ignore[misc]  # paramiko has no types
    """A transport whose authentication loses no answer."""

    def get_auth_handler(self) -> AuthOnlyHandler:
        """Return what `auth_publickey` and the like are carried out by."""
        return _Handler(self)


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
    allowed.ciphers = _among(allowed.ciphers, hop, "ciphers")
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
