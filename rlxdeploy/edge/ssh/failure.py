"""Why no connection came about, and the one place that turns it into the project's errors.

Both clients raise what stands here, or an OSError from the socket; nobody else reads a message.
"""

import errno
import socket
from dataclasses import dataclass
from typing import ClassVar

from rlxdeploy.edge.ssh.route import Hop
from rlxdeploy.errors import HostError, Refused, Unreachable, Untrusted
from rlxdeploy.facts.known_hosts import KnownKey, Standing

_NO_ROUTE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL)


class ConnectFailure(Exception):
    """Base of the reasons below; they never leave this package."""

    becomes: ClassVar[type[HostError]] = Unreachable

    def told(self, host: str, hop: Hop) -> tuple[str, str]:
        """Return why and what to do, for people: *hop* failed on the way to *host*."""
        raise NotImplementedError


@dataclass(eq=False)
class KeyRejected(ConnectFailure):
    """The host's key, as type and fingerprint, is not trusted; *evidence* says against which."""

    becomes = Untrusted
    key: str
    standing: Standing
    evidence: tuple[KnownKey, ...] = ()

    def told(self, host: str, hop: Hop) -> tuple[str, str]:
        """Show the fingerprint; of a changed key both, and where the known one stands."""
        known = ", ".join(f"{line.key} at {line.where}" for line in self.evidence)
        if self.standing is Standing.CHANGED:
            why = f"the host key of {hop.alias} has changed: it shows {self.key}, known is {known}"
            return why, "if that is right, remove the old line, then `rlxdeploy trust` the host"
        if self.standing is Standing.REVOKED:
            return f"the host key of {hop.alias} is revoked: {self.key} at {known}", ""
        remedy = f"check the fingerprint, then `rlxdeploy trust {host}`"
        return f"the host key of {hop.alias} is unknown: {self.key}", remedy


@dataclass(eq=False)
class AuthenticationFailed(ConnectFailure):
    """The server let nobody in; what was *offered*, what could not be and why, what it takes."""

    becomes = Refused
    user: str
    offered: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    too_many: bool = False

    def told(self, host: str, hop: Hop) -> tuple[str, str]:
        """Name the user and the keys."""
        del host
        keys = ", ".join(self.offered) or "no key"
        why = [f"{self.user} is not let in on {hop.alias}", f"offered {keys}"]
        if self.passed_over:
            why.append(f"passed over {', '.join(self.passed_over)}")
        if self.methods and "publickey" not in self.methods:
            why.append(f"the server takes {', '.join(self.methods)} only")
        return "; ".join(why), self._remedy(hop)

    def _remedy(self, hop: Hop) -> str:
        if self.too_many:
            return "it takes no more keys: set IdentitiesOnly yes and one IdentityFile"
        if any("passphrase" in reason for reason in self.passed_over):
            return "load the key into an agent with ssh-add; no passphrase is asked for here"
        return f"`ssh -o BatchMode=yes {hop.alias}` has to work first"


@dataclass(eq=False)
class LostBeforeBanner(ConnectFailure):
    """The server hung up before it said who it is, as one over MaxStartups does: try again.

    *said* is what came in place of a banner, *command* the ProxyCommand that led there.
    """

    said: str = ""
    command: str = ""

    def told(self, host: str, hop: Hop) -> tuple[str, str]:
        """Say what came in place of a banner."""
        del host, hop
        why = "it hung up before the SSH banner" + (f" ({self.said})" if self.said else "")
        through = f"; the ProxyCommand is {self.command!r}" if self.command else ""
        return why, f"its sshd may be at MaxStartups, or be no sshd{through}"


@dataclass(eq=False)
class NoAgreement(ConnectFailure):
    """The two ends have no algorithm in common."""

    why: str

    def told(self, host: str, hop: Hop) -> tuple[str, str]:
        """Name the client that knows more."""
        del host, hop
        return f"no algorithm in common: {self.why}", 'try client = "openssh" in [ssh]'


@dataclass(eq=False)
class Broken(ConnectFailure):
    """The connection came up and went away or stalled; *doing* is what it was about."""

    doing: str
    why: str

    def told(self, host: str, hop: Hop) -> tuple[str, str]:
        """Say at what."""
        del host, hop
        return f"{self.doing}: {self.why}", ""


@dataclass(eq=False)
class ForwardingRefused(ConnectFailure):
    """The hop before, called *through*, would not or could not open the way to this one."""

    through: str
    why: str

    def told(self, host: str, hop: Hop) -> tuple[str, str]:
        """Name the hop that refused."""
        del host, hop
        remedy = "is sshd running at the far end, and does the hop allow TCP forwarding?"
        return f"{self.through} could not open the way: {self.why}", remedy


@dataclass(eq=False)
class ProxyFailed(ConnectFailure):
    """The ProxyCommand ended without a connection; *said* is its stderr."""

    command: str
    said: str = ""

    def told(self, host: str, hop: Hop) -> tuple[str, str]:
        """Show the command and its last words."""
        del host, hop
        said = f": {self.said}" if self.said else ""
        return f"its ProxyCommand gave up{said}", f"the command is {self.command!r}"


def explain(host: str, hop: Hop, error: ConnectFailure | OSError) -> HostError:
    """Return *error*, met at *hop* on the way to *host*, as the failure of that host."""
    name = hop.resolved.hostname
    peer = f"[{name}]:{hop.resolved.port}" if ":" in name else f"{name}:{hop.resolved.port}"
    doing = f"connect to {peer}" if hop.alias == host else f"connect to {hop.alias} ({peer})"
    if isinstance(error, ConnectFailure):
        return error.becomes(host, doing, *error.told(host, hop))
    return Unreachable(host, doing, *_network(hop, error))


def _network(hop: Hop, error: OSError) -> tuple[str, str]:
    """Return why and what to do; the class and the number tell, not the text."""
    if isinstance(error, socket.gaierror):
        return f"{hop.resolved.hostname!r} does not resolve: {error.strerror}", ""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused", "is sshd running, and on this port?"
    if isinstance(error, TimeoutError):
        return "no answer in time", "is the host up, and does a firewall drop us?"
    if error.errno in _NO_ROUTE:
        return f"no route: {error.strerror}", ""
    return error.strerror or str(error), ""
