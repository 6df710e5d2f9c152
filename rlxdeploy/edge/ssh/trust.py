"""Making a host's key known: fetch it, let a person compare it, remember it.

A host behind others takes a round a hop: only a hop that is trusted leads to the next one.
"""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from paramiko import SSHException

from rlxdeploy.edge.ssh.channel import hung_up_at
from rlxdeploy.edge.ssh.dial import dial
from rlxdeploy.edge.ssh.fabric_client import public_of
from rlxdeploy.edge.ssh.fabric_failure import why_it_failed
from rlxdeploy.edge.ssh.failure import ConnectFailure, explain
from rlxdeploy.edge.ssh.hosts import SshHosts
from rlxdeploy.edge.ssh.known_hosts import name_of
from rlxdeploy.edge.ssh.links import Link
from rlxdeploy.edge.ssh.route import Hop
from rlxdeploy.edge.ssh.terms import Terms
from rlxdeploy.edge.ssh.transport import transport_for
from rlxdeploy.errors import HostError
from rlxdeploy.facts.ssh_keys import PublicKey
from rlxdeploy.model.host import Host


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that nobody knows yet, of *hop*, which is *host* itself or leads there."""

    host: Host
    hop: Hop
    key: PublicKey

    @property
    def name(self) -> str:
        """The name under which it would be filed."""
        return name_of(self.hop)

    def __str__(self) -> str:
        return f"{self.hop.alias} ({self.name}): {self.key}"


def next_unknown(hosts: SshHosts, host: Host, deadline: float) -> NewKey | None:
    """Return the first unknown key on the way to *host*, None once the whole way is trusted.

    Nobody logs in where the key is unknown.  Raises HostError for a hop that cannot be reached,
    Untrusted for a key that is revoked or not the one that is known.
    """
    route = hosts.route(host, deadline)
    for length, hop in enumerate(route):
        before = hosts.link(host, route[:length], deadline) if length else None
        try:
            attempt = partial(_fetch, hosts.terms, hop, before, deadline)
            key = hosts.tried(route[: length + 1], deadline, attempt)
            if hosts.terms.is_new(hop, key):
                return NewKey(host, hop, key)
        except (ConnectFailure, OSError) as error:
            raise explain(host.name, hop, error) from error
    return None


def remember(hosts: SshHosts, new: NewKey) -> Path:
    """Append *new* to the user's known_hosts file and return the file; a person has agreed."""
    try:
        return hosts.known.remember(new.hop, new.key)
    except OSError as error:
        raise HostError(new.host.name, "remember the host key", str(error)) from error


def _fetch(terms: Terms, hop: Hop, before: Link | None, deadline: float) -> PublicKey:
    """Exchange keys and hang up; raise ConnectFailure or OSError."""
    patience = terms.patience(hop)
    line = before.line_to(hop, deadline) if before else dial(hop, patience, deadline)
    transport = transport_for(hop, terms, line.socket)
    transport.banner_timeout = patience
    try:
        with hung_up_at(deadline, line.close):
            transport.start_client(timeout=max(deadline - time.monotonic(), 0))
            return public_of(transport.get_remote_server_key())
    except (SSHException, EOFError) as error:
        through = before.hop.alias if before else ""
        raise why_it_failed(transport, line, hop, through, error) from error
    finally:
        transport.close()
        line.close()
