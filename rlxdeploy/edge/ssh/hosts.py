"""All hosts of one run over SSH: sessions out, one connection a host kept for the next session."""

import shlex
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Self, TypeVar

from rlxdeploy.edge.pool import Pool
from rlxdeploy.edge.session import BOOTSTRAP, Session
from rlxdeploy.edge.ssh.clients import Clients
from rlxdeploy.edge.ssh.fabric_client import FabricClient
from rlxdeploy.edge.ssh.failure import ConnectFailure, explain
from rlxdeploy.edge.ssh.known_hosts import KnownHosts
from rlxdeploy.edge.ssh.links import Link, Links, Stopped
from rlxdeploy.edge.ssh.needs import Choice
from rlxdeploy.edge.ssh.openssh_client import OpenSshClient
from rlxdeploy.edge.ssh.overrides import Overrides
from rlxdeploy.edge.ssh.route import Route
from rlxdeploy.edge.ssh.terms import Terms
from rlxdeploy.edge.ssh.turns import Turns
from rlxdeploy.edge.ssh.ways import Ways
from rlxdeploy.errors import Unreachable
from rlxdeploy.model.host import Host
from rlxdeploy.model.vocabulary import SshClient

T = TypeVar("T")

SHELL = ("/bin/sh",)


class SshHosts:
    """Opens sessions on hosts; safe to use from many threads, closed once at the end of the run."""

    def __init__(self, overrides: Overrides, ways: Ways | None = None) -> None:
        self.overrides = overrides
        self.ways = ways or Ways(overrides)
        self.known = KnownHosts()
        self.terms = Terms(overrides, self.known)
        self._clients = Clients(overrides.client, self.known)
        self._considered: set[str | None] = set()
        self._turns = Turns()
        self._openssh = OpenSshClient(self.terms)
        self._by_fabric = Links(FabricClient(self.terms), self._turns)
        self._by_openssh = Links(self._openssh, self._turns)

    def expect(self, hosts: Iterable[Host], stop: threading.Event | None = None) -> None:
        """Look up the ways to *hosts* before any is opened, so that shared hops are shared.

        A way that cannot be looked up, or not in the time of one step, is looked up anew by who
        opens it, and its failure told then.
        """
        unknown = {host.name: host for host in hosts if host.ssh not in self._considered}
        pool = Pool(self.overrides.forks, self.overrides.patience(None), stop)

        def look_up(host: Host, deadline: float) -> None:
            self._clients.consider(self.route(host, deadline))
            self._considered.add(host.ssh)

        pool.on_hosts(look_up, unknown, "look up the way")

    @property
    def opening(self) -> float:
        """Seconds in which any host can be opened, by the longest way looked up so far.

        What `ConnectTimeout` says of each hop is in it, so that no host is given up before.
        """
        ways = (sum(map(self.terms.opening, route)) for route in self.ways.known)
        return max((self.overrides.opening(), *ways))

    def open(self, host: Host, deadline: float, shell: tuple[str, ...] = SHELL) -> Session:
        """Return a session with the bootstrap running in *shell* (`edge.session.OpenSession`).

        Raises Unreachable, Untrusted or Refused, naming the hop that failed.
        """
        route = self.route(host, deadline)
        link = self.link(host, route, deadline)
        try:
            return link.session(host, shlex.join((*shell, "-c", BOOTSTRAP)), deadline)
        except ConnectFailure as error:
            raise explain(host.name, route[-1], error) from error

    def route(self, host: Host, deadline: float) -> Route:
        """Return the hops to *host*, asked of `ssh -G` once a run."""
        return self.ways.to(host, deadline)

    def client_of(self, host: Host, deadline: float) -> Choice:
        """Return the client that *host* is reached with, and why it is not fabric if it is not."""
        return self._clients.of(self.route(host, deadline))

    @property
    def by_openssh(self) -> Mapping[str, str]:
        """The aliases reached with the OpenSSH client so far, and why each is."""
        return self._clients.by_openssh

    def link(self, host: Host, route: Route, deadline: float) -> Link:
        """Return the open link to the end of *route*, all of the way to *host* or its beginning."""
        choice = self.client_of(host, deadline)
        if time.monotonic() > deadline:
            raise Unreachable(host.name, "connect", "no time was left")
        try:
            if choice.client is SshClient.OPENSSH:
                return self._by_openssh.to(route, deadline)
            return self._by_fabric.to(route, deadline)
        except Stopped as stopped:
            raise explain(host.name, stopped.hop, stopped.reason) from stopped.reason

    def tried(self, route: Route, deadline: float, attempt: Callable[[], T]) -> T:
        """Make *attempt* at the end of *route* as a connection is made, see `Turns.tried`."""
        return self._turns.tried(route, deadline, attempt)

    def close(self) -> None:
        """Hang up on every host, then on the hops."""
        self._by_fabric.close()
        self._by_openssh.close()
        self._openssh.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
