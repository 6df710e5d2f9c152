"""The world as the use cases reach it: where sessions are opened, and what bounds them."""

import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Self

from rlxdeploy.edge.become import PasswordSession
from rlxdeploy.edge.local import open_local
from rlxdeploy.edge.session import Session
from rlxdeploy.edge.ssh.overrides import Overrides
from rlxdeploy.edge.ssh.ways import Ways
from rlxdeploy.edge.survey import SurveyLimits
from rlxdeploy.errors import Finding, PasswordRefused, Severity, UsageError
from rlxdeploy.model.host import Host
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.secrets import variables_of
from rlxdeploy.model.tables import Ssh
from rlxdeploy.model.vocabulary import Become

if TYPE_CHECKING:
    from rlxdeploy.edge.ssh.hosts import SshHosts

# A wrong password is answered after some seconds, and sudo may have to ask a directory for it.
_SUDO_S = 20.0


class Lab:
    """How one run reaches hosts: every connection is kept until the run closes its lab.

    *interpreter* runs rlxdeploy and is the default python of ranks on the controller; *forks*, if
    given, goes before the inventory's.  Once *stop* is set, no further host is begun.  *password*,
    if not empty, is what sudo is told where it asks: once on a host that does not take it.
    """

    def __init__(
        self, *, forks: int | None = None, interpreter: str = sys.executable, password: str = ""
    ) -> None:
        self.interpreter = interpreter
        self.stop = Event()
        self.meanwhile: Callable[[], None] | None = None
        self._forks = forks
        self._table = Ssh()
        self._folder = Path()
        self._withheld: frozenset[str] = frozenset()
        self._password = password
        self._refused: dict[str, PasswordRefused] = {}
        self._lock = Lock()
        self._open = ExitStack()
        self._over_ssh: SshHosts | None = None

    def follow(self, loaded: Loaded) -> None:
        """Reach hosts as the `[ssh]` table of *loaded* says, from the first connection on.

        No shell on this machine inherits the variables that secrets come from: a supervisor that it
        starts would show them for as long as it lives.  Raises UsageError for a password that
        nobody may be told.
        """
        self._table, self._folder = loaded.inventory.ssh, Path(loaded.path).parent
        self._withheld = variables_of(loaded.inventory)
        if self._password and self._table.become is Become.NONE:
            raise UsageError('there is a password for sudo, and [ssh] become = "none" forbids it')

    def open_session(self, host: Host, deadline: float) -> Session:
        """Open a session on *host*, here or over SSH (`edge.session.OpenSession`).

        Raises PasswordRefused for a host that has not taken the password before.
        """
        if (refused := self._refused.get(host.name)) is not None:
            raise refused
        session = self._session(host, deadline)
        return PasswordSession(session, self._password) if self._password else session

    def expect(self, hosts: Iterable[Host]) -> None:
        """Learn the ways to all of *hosts* together, before the first of them is reached.

        What is to be done *meanwhile*, as hosts are talked to, begins now in a thread of its own.
        """
        if remote := [host for host in hosts if not host.is_controller]:
            self._reach(remote).expect(remote, self.stop)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            Thread(target=meanwhile, daemon=True).start()

    def spare(self, refused: PasswordRefused) -> None:
        """Try the password no more on a host that has not taken it."""
        self._refused[refused.host] = refused

    def _session(self, host: Host, deadline: float) -> Session:
        if host.is_controller:
            return open_local(host, deadline, self._withheld)
        return self._reach().open(host, deadline)

    def _reach(self, expected: Iterable[Host] = ()) -> "SshHosts":
        with self._lock:
            if self._over_ssh is None:
                self._over_ssh = self._open.enter_context(self._ssh(expected))
            return self._over_ssh

    def told(self) -> tuple[Finding, ...]:
        """Return what is to be said of how hosts were reached: new keys, and other clients."""
        if self._over_ssh is None:
            return ()
        reached = self._over_ssh.by_openssh
        found = [
            Finding(
                f"{one.alias}: its key was unknown; {one.key} is now in {one.file}",
                key="ssh.host_keys",
                severity=Severity.NOTICE,
            )
            for one in self._over_ssh.known.accepted
        ]
        for why in dict.fromkeys(reached.values()):
            hosts = ", ".join(alias for alias, one in reached.items() if one == why)
            what = f"{hosts}: reached {why}"
            found.append(Finding(what, key="ssh.client", severity=Severity.NOTICE))
        return tuple(found)

    @property
    def forks(self) -> int:
        """How many hosts are talked to at once."""
        return self._forks or self._table.forks

    @property
    def limits(self) -> SurveyLimits:
        """What bounds a survey of the hosts that are expected."""
        limits, over_ssh = SurveyLimits(), self._over_ssh
        opening = over_ssh.opening if over_ssh else self._overrides.opening()
        transit = limits.transit + (_SUDO_S if self._password else 0.0)
        return replace(limits, at_once=self.forks, opening=opening, transit=transit)

    def close(self) -> None:
        """Hang up on every host."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ssh(self, expected: Iterable[Host]) -> "SshHosts":
        ways = Ways(self._overrides)
        ways.begin(expected, self.stop)
        # Imported when needed, for a job on this machine alone does not; `ssh` reads its
        # configuration meanwhile.
        from rlxdeploy.edge.ssh.hosts import SshHosts  # noqa: PLC0415 - as said above

        return SshHosts(self._overrides, ways)

    @property
    def _overrides(self) -> Overrides:
        return Overrides.of(self._table, self._folder)
