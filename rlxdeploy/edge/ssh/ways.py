"""The ways to the hosts of one run, each asked of `ssh -G` once, by whoever needs it first."""

import threading
import time
from collections.abc import Iterable, Sequence

from rlxdeploy.edge.pool import Pool
from rlxdeploy.edge.ssh.overrides import Overrides
from rlxdeploy.edge.ssh.route import Route, resolve
from rlxdeploy.model.host import Host


class Ways:
    """The routes by alias; safe to use from many threads."""

    def __init__(self, overrides: Overrides) -> None:
        self.overrides = overrides
        self._lock = threading.Lock()
        self._known: dict[str, Route] = {}
        self._coming: dict[str, threading.Event] = {}

    @property
    def known(self) -> Sequence[Route]:
        """The routes that were looked up so far."""
        with self._lock:
            return tuple(self._known.values())

    def begin(self, hosts: Iterable[Host], stop: threading.Event | None = None) -> None:
        """Have the ways to *hosts* looked up from now on; returns at once.

        One that cannot be looked up is looked up anew by who asks for it, who is told why then.
        """
        asked = {host.name: host for host in hosts if host.ssh}
        coming = {str(host.ssh): threading.Event() for host in asked.values()}
        self._coming |= coming
        pool = Pool(self.overrides.forks, self.overrides.patience(None), stop)

        def look_up(host: Host, deadline: float) -> None:
            try:
                self._look_up(host, deadline)
            finally:
                coming[str(host.ssh)].set()

        def look_all_up() -> None:
            pool.on_hosts(look_up, asked, "look up the way")
            # Also those that were not begun: nobody is to wait for them.
            for event in coming.values():
                event.set()

        threading.Thread(target=look_all_up, name="look up ways", daemon=True).start()

    def to(self, host: Host, deadline: float) -> Route:
        """Return the hops to *host*; raises what `route.resolve` raises."""
        if host.ssh is None:
            raise ValueError(f"{host.name} is the controller: there is no way to it over SSH")
        if (coming := self._coming.get(host.ssh)) is not None:
            coming.wait(max(0.0, deadline - time.monotonic()))
        return self._known.get(host.ssh) or self._look_up(host, deadline)

    def _look_up(self, host: Host, deadline: float) -> Route:
        route = resolve(host.name, str(host.ssh), self.overrides, deadline)
        with self._lock:
            return self._known.setdefault(str(host.ssh), route)
