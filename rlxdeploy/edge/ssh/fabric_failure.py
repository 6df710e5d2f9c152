"""What a failed fabric connection means, told by how far its transport had come."""

from paramiko import ChannelException, IncompatiblePeer, Transport

from rlxdeploy.edge.ssh.dial import Line
from rlxdeploy.edge.ssh.failure import (
    Broken,
    ConnectFailure,
    ForwardingRefused,
    LostBeforeBanner,
    NoAgreement,
    ProxyFailed,
)
from rlxdeploy.edge.ssh.openssh_log import is_hangup
from rlxdeploy.edge.ssh.route import Hop


def why_it_failed(
    transport: Transport | None, line: Line | None, hop: Hop, through: str, error: Exception
) -> ConnectFailure:
    """Return what *error* means for *hop*, reached over *line* or through the hop *through*."""
    if transport is None:
        why = error.text if isinstance(error, ChannelException) else str(error)
        return ForwardingRefused(through, why)
    if not transport.remote_version:
        return _before_banner(transport, line, hop, through, error)
    if isinstance(error, IncompatiblePeer):
        return NoAgreement(str(error))
    doing = "log in" if transport.initial_kex_done else "exchange keys"
    return Broken(doing, "no answer in time" if transport.is_active() else str(error))


def _before_banner(
    transport: Transport, line: Line | None, hop: Hop, through: str, error: Exception
) -> ConnectFailure:
    """Tell a server that hangs up from one that says nothing: paramiko keeps that as context."""
    causes = (error, error.__context__)
    if any(isinstance(cause, (EOFError, ConnectionError)) for cause in causes):
        if line and line.is_command:
            return _behind_command(line, hop.resolved.proxy_command, through)
        return LostBeforeBanner()
    is_late = transport.is_active() or any(isinstance(cause, TimeoutError) for cause in causes)
    return Broken("wait for the SSH banner", "no answer in time" if is_late else str(error))


def _behind_command(line: Line, command: str, through: str) -> ConnectFailure:
    """Tell a far end that hung up, on the ProxyCommand too, from a command that failed.

    Without a *command* of the configuration it is our own ssh, through the hop *through*.
    """
    if is_hangup(line.said) or not line.has_failed():
        return LostBeforeBanner(line.said, command)
    return ProxyFailed(command, line.said) if command else ForwardingRefused(through, line.said)
