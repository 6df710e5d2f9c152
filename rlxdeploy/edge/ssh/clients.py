"""Which client every route is taken with: all routes through one door with the same.

A link of one client is of no use to the other, so a bastion that any host needs the OpenSSH client
behind is reached with that client alone.  That is only known once all routes are.
"""

import threading
from collections.abc import Mapping

from rlxdeploy.edge.ssh.known_hosts import KnownHosts
from rlxdeploy.edge.ssh.needs import Choice, choose
from rlxdeploy.edge.ssh.route import Route
from rlxdeploy.model.vocabulary import SshClient


class Clients:
    """The choices of one run, each made once; safe to use from many threads."""

    def __init__(self, wanted: SshClient, known: KnownHosts) -> None:
        self._wanted, self._known = wanted, known
        self._lock = threading.Lock()
        self._alone: dict[str, Choice] = {}
        self._needed_by: dict[tuple[object, ...], str] = {}
        self._chosen: dict[str, Choice] = {}

    def consider(self, route: Route) -> Choice:
        """Return what *route* needs by itself, and remember its door as one for that client."""
        alias = route[-1].alias
        if (alone := self._alone.get(alias)) is None:
            alone = choose(self._wanted, route, self._known)
        with self._lock:
            self._alone[alias] = alone
            if alone.client is SshClient.OPENSSH:
                self._needed_by.setdefault(route[0].identity, alias)
        return alone

    def of(self, route: Route) -> Choice:
        """Return the client for *route*, the same for the rest of the run, and why it is taken."""
        alone, alias = self.consider(route), route[-1].alias
        with self._lock:
            return self._chosen.setdefault(alias, self._beside_others(route, alone))

    def _beside_others(self, route: Route, alone: Choice) -> Choice:
        other = self._needed_by.get(route[0].identity)
        if other is None or alone.client is SshClient.OPENSSH:
            return alone
        shared = f"{route[0].alias} is shared with {other}, which needs it"
        return Choice(SshClient.OPENSSH, (shared,))

    @property
    def by_openssh(self) -> Mapping[str, str]:
        """The aliases reached with the OpenSSH client so far, and why each is."""
        with self._lock:
            chosen = dict(self._chosen)
        return {
            alias: f"with {one}" + ("" if one.reasons else " as written")
            for alias, one in chosen.items()
            if one.client is SshClient.OPENSSH
        }
