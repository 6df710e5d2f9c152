"""Connections by fabric: explicit values only, made afresh for each one.

fabric reads no configuration file here and trusts nobody by itself: `ssh -G` has said all there is
to say, and every host key goes through `Terms.check`.  The one exec takes a raw channel from the
transport; fabric's own runner costs a second a host when stdin is fed.
"""

import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from fabric import Config, Connection
from paramiko import (
    PKey,
    SSHClient,
    SSHConfig,
    SSHException,
)

from rlxdeploy.edge.session import Session
from rlxdeploy.edge.ssh.authentication import KeyAuthentication
from rlxdeploy.edge.ssh.channel import ChannelSession, hung_up_at
from rlxdeploy.edge.ssh.dial import Line, dial
from rlxdeploy.edge.ssh.fabric_failure import why_it_failed
from rlxdeploy.edge.ssh.failure import (
    Broken,
    ConnectFailure,
    ForwardingRefused,
)
from rlxdeploy.edge.ssh.identities import Agent, offers
from rlxdeploy.edge.ssh.keepalive import keep_alive
from rlxdeploy.edge.ssh.route import Hop
from rlxdeploy.edge.ssh.terms import Terms
from rlxdeploy.edge.ssh.transport import transport_for
from rlxdeploy.facts.ssh_keys import PublicKey, from_blob
from rlxdeploy.model.host import Host

# paramiko logs what it raises too; without a handler of its own that would go to stderr.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class FabricLink:
    """An open connection to *hop*, over *line* or over the link before."""

    hop: Hop
    connection: Connection
    line: Line | None

    @property
    def is_alive(self) -> bool:
        return bool(self.connection.is_connected)

    def session(self, host: Host, command: str, deadline: float) -> Session:
        """Start *command* on a channel of its own; raise ConnectFailure if the host will not."""
        transport = self.connection.transport
        try:
            channel = transport.open_session(timeout=max(deadline - time.monotonic(), 0))
            with hung_up_at(deadline, channel.close):
                channel.exec_command(command)
        except (SSHException, EOFError, OSError) as error:
            why = transport.ended_because or str(error) or "the connection closed"
            raise Broken("start a shell", why) from error
        return ChannelSession(host, channel)

    def line_to(self, hop: Hop, deadline: float) -> Line:
        """Return a line to the SSH port of *hop*; raise ForwardingRefused if there is no way."""
        end = (hop.resolved.hostname, hop.resolved.port)
        left = max(deadline - time.monotonic(), 0)
        try:
            channel = self.connection.transport.open_channel(
                "direct-tcpip", end, ("", 0), timeout=left
            )
        except (SSHException, EOFError, OSError) as error:
            raise ForwardingRefused(self.hop.alias, str(error)) from error
        return Line(channel)

    def close(self) -> None:
        """Hang up; whatever runs over this link ends with it, and a broken one is closed too."""
        with suppress(SSHException, EOFError, OSError):
            self.connection.close()
        if self.line:
            self.line.close()


@dataclass(frozen=True, slots=True)
class FabricClient:
    """Opens links by fabric, under *terms*."""

    terms: Terms

    def connect(self, hop: Hop, before: FabricLink | None, deadline: float) -> FabricLink:
        """Return a link to *hop*, through *before* if given; raise ConnectFailure or OSError."""
        patience = self.terms.patience(hop)
        deadline = min(deadline, time.monotonic() + self.terms.opening(hop))
        line = None if before else dial(hop, patience, deadline)
        agent = Agent(hop, patience)
        try:
            keys = offers(hop, agent) if hop.resolved.uses_keys else []
            strategy = KeyAuthentication(hop.resolved.user, keys, deadline)
            link = FabricLink(hop, self._connection(hop, before, line, strategy), line)
            self._open(link, before, deadline)
        except BaseException:
            if line:
                line.close()
            raise
        finally:
            agent.close()
        return link

    def _connection(
        self, hop: Hop, before: FabricLink | None, line: Line | None, strategy: KeyAuthentication
    ) -> Connection:
        patience = self.terms.patience(hop)
        authentication = {"strategy_class": lambda **_: strategy}
        connection = Connection(
            hop.resolved.hostname,
            user=hop.resolved.user,
            port=hop.resolved.port,
            config=Config(
                lazy=True, ssh_config=SSHConfig(), overrides={"authentication": authentication}
            ),
            gateway=before.connection if before else False,
            forward_agent=False,
            inline_ssh_env=False,
            connect_kwargs={
                "timeout": patience,
                "banner_timeout": patience,
                "auth_timeout": patience,
                "channel_timeout": patience,
                "compress": hop.resolved.says("compression"),
                "transport_factory": partial(transport_for, hop, self.terms),
                **({"sock": line.socket} if line else {}),
            },
        )
        connection.client.set_missing_host_key_policy(_HostKeyCheck(hop, self.terms))
        return connection

    def _open(self, link: FabricLink, before: FabricLink | None, deadline: float) -> None:
        try:
            with hung_up_at(deadline, link.close):
                link.connection.open()
                # sshd counts a login as begun for a moment after it says yes; then it answers.
                link.connection.transport.await_sign(deadline)
        except ConnectFailure:
            link.close()
            raise
        except (SSHException, EOFError, OSError) as error:
            transport = link.connection.client.get_transport()
            through = before.hop.alias if before else ""
            reason = why_it_failed(transport, link.line, link.hop, through, error)
            link.close()
            raise reason from error
        keep_alive(link.connection.transport, self.terms.keepalive(link.hop))


@dataclass(frozen=True, slots=True)
class _HostKeyCheck:
    """paramiko's policy: asked about every key, since its client is given no known ones."""

    hop: Hop
    terms: Terms

    def missing_host_key(self, client: SSHClient, hostname: str, key: PKey) -> None:
        del client, hostname
        self.terms.check(self.hop, public_of(key))


def public_of(key: PKey) -> PublicKey:
    """Return paramiko's key as ours."""
    return from_blob(key.asbytes())
