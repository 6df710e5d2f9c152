"""What every connection of one run is opened under."""

from dataclasses import dataclass

from rlxdeploy.edge.ssh.failure import Broken, KeyRejected
from rlxdeploy.edge.ssh.known_hosts import KnownHosts
from rlxdeploy.edge.ssh.overrides import Overrides
from rlxdeploy.edge.ssh.route import Hop
from rlxdeploy.facts.known_hosts import Standing
from rlxdeploy.facts.ssh_keys import PublicKey
from rlxdeploy.model.vocabulary import HostKeys

# Without ServerAliveInterval: keeps a NAT's entry while a host is busy and says nothing.
_KEEPALIVE_S = 15


@dataclass(frozen=True, slots=True)
class Keepalive:
    """After *interval* seconds of silence a host is asked for a sign, *most* times in a row."""

    interval: int
    most: int

    def __str__(self) -> str:
        asked = "a keepalive" if self.most == 1 else f"{self.most} keepalives"
        return f"no answer to {asked} in {self.most * self.interval} s"


@dataclass(frozen=True, slots=True)
class Terms:
    """The inventory's wishes and the known host keys."""

    overrides: Overrides
    known: KnownHosts

    def patience(self, hop: Hop) -> float:
        """Return the seconds that one step towards *hop* may take."""
        return self.overrides.patience(hop.resolved.seconds("connecttimeout"))

    def opening(self, hop: Hop) -> float:
        """Return the seconds that a connection to *hop* may take, the way to it not counted."""
        return self.overrides.opening(hop.resolved.seconds("connecttimeout"))

    def keepalive(self, hop: Hop) -> Keepalive:
        """Return how we ask whether *hop* is still there; a count of zero still asks once."""
        interval = int(hop.resolved.seconds("serveraliveinterval") or _KEEPALIVE_S)
        return Keepalive(interval, int(hop.resolved.seconds("serveralivecountmax") or 1))

    @property
    def accepts_new(self) -> bool:
        return self.overrides.host_keys is HostKeys.ACCEPT_NEW

    def is_new(self, hop: Hop, key: PublicKey) -> bool:
        """Tell whether nobody knows the key yet; raise KeyRejected if it is a wrong one."""
        judgement = self.known.judge(hop, key)
        if judgement.standing in (Standing.CHANGED, Standing.REVOKED):
            raise KeyRejected(str(key), judgement.standing, judgement.evidence)
        return judgement.standing is Standing.UNKNOWN

    def check(self, hop: Hop, key: PublicKey) -> None:
        """Let a host's key pass, remembering a new one where the inventory says so.

        Raises KeyRejected, and Broken where a new key cannot be remembered.
        """
        if self.is_new(hop, key):
            if not self.accepts_new:
                raise KeyRejected(str(key), Standing.UNKNOWN)
            self._remember(hop, key)

    def _remember(self, hop: Hop, key: PublicKey) -> None:
        try:
            self.known.note(hop, str(key), self.known.remember(hop, key))
        except OSError as error:
            raise Broken("remember the host key", str(error)) from error
