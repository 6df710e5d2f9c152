"""The fleet: one run's network, controller and hosts."""

import secrets
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from tests.fleet.harness.controller import Controller
from tests.fleet.harness.host import BASTION, Host
from tests.fleet.harness.images import RELEASES, Release, image
from tests.fleet.harness.local import FleetError, locked
from tests.fleet.harness.network import HOST_NUMBERS, Network, Port
from tests.fleet.harness.reaper import let_reap, start_reaper
from tests.fleet.harness.runs import REGISTRY_LOCK, REGISTRY_S, enlist
from tests.fleet.harness.spec import HostSpec, Place, mixture
from tests.fleet.harness.trust import SshDirectory


class Lend(Protocol):
    """Boot hosts as `Fleet.hosts` does, for as long as the lender says."""

    def __call__(self, *wanted: HostSpec | int) -> list[Host]: ...


@contextmanager
def running_fleet(say: Callable[[str], None]) -> Iterator["Fleet"]:
    """Give a fleet without hosts; end all of it on leaving, and after a SIGKILL as well."""
    images = {release: image(release, say) for release in RELEASES}
    token = f"rlxf-{secrets.token_hex(3)}"
    with locked(REGISTRY_LOCK, REGISTRY_S):
        directory = enlist(token)
        reaper = start_reaper(token)
    # Held here, since hosts have ended processes to see to even where the fleet fails half made.
    hosts: dict[str, Host] = {}
    try:
        with closing(Fleet(token, directory, images, hosts)) as fleet:
            yield fleet
    finally:
        let_reap(reaper)
        for host in hosts.values():
            host.note_end()


class Fleet:
    """Hosts on wires of their own, and the controller that reaches them."""

    def __init__(
        self, token: str, directory: Path, images: Mapping[Release, Path], hosts: dict[str, Host]
    ) -> None:
        self.token = token
        self._directory = directory
        self._images = images
        self._hosts = hosts
        self._count = 0
        self._network = Network(token)
        self._network.build("lan")
        self._controller = Controller(token, self._network.switch("lan"), directory / "controller")
        self._ssh = SshDirectory(self._controller.home)

    @property
    def home(self) -> Path:
        """The controller's home directory; its .ssh knows all hosts by name."""
        return self._controller.home

    @property
    def bastion(self) -> Host:
        """The host between the lan and the inner place, made at first use."""
        if BASTION not in self._hosts:
            self._boot(HostSpec(name=BASTION))
        return self._hosts[BASTION]

    def hosts(self, *wanted: HostSpec | int) -> list[Host]:
        """Boot new hosts, for a number that many of all releases, and wait until they are up.

        They stay until the fleet ends or they are discarded. Raises FleetError with what a host
        still lacked when one does not come up.
        """
        specs = [
            spec for want in wanted for spec in (mixture(want) if isinstance(want, int) else [want])
        ]
        if any(spec.place == "inner" for spec in specs):
            self.bastion.await_up()
        return self._boot(*specs)

    def discard(self, *hosts: Host) -> None:
        """Take hosts away, in whatever state they are."""
        for host in hosts:
            host.kill()
        for host in hosts:
            host.scrap()
            del self._hosts[host.name]
        self._tell_names()

    @contextmanager
    def lend(self, *wanted: HostSpec | int) -> Iterator[list[Host]]:
        """Give new hosts, as `hosts` does, and discard them on leaving."""
        hosts = self.hosts(*wanted)
        try:
            yield hosts
        finally:
            self.discard(*hosts)

    def controller(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        timeout: float = 60.0,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run *argv* as the controller's user; raise FleetError at the deadline only."""
        return self._controller.run(argv, stdin=stdin, timeout=timeout, env=env)

    def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start *argv* as the controller's user, leading a session of its own."""
        return self._controller.spawn(argv, env=env)

    def ssh(
        self, host: Host, command: str, *, user: str = "root", timeout: float = 30.0
    ) -> subprocess.CompletedProcess[str]:
        """Have OpenSSH run a shell command on *host* from the controller, never asking back."""
        argv = ("ssh", "-o", "BatchMode=yes", "-l", user, host.name, command)
        return self._controller.run(argv, timeout=timeout)

    def close(self) -> None:
        """End what the controller keeps ready; hosts end with the run."""
        self._controller.close()

    def _boot(self, *specs: HostSpec) -> list[Host]:
        hosts = [self._new_host(spec) for spec in specs]
        self._tell_names()
        try:
            for host in hosts:
                host.start()
            for host in hosts:
                host.await_up()
        except FleetError:
            self.discard(*hosts)
            raise
        return hosts

    def _new_host(self, spec: HostSpec) -> Host:
        self._count += 1
        name = spec.name or f"h{self._count}"
        if name in self._hosts:
            raise FleetError(f"there is a host {name} already")
        port = self._free_port(spec.place)
        directory = self._directory / "hosts" / name
        host = Host(replace(spec, name=name), port, self._network, self._ssh, directory)
        self._hosts[name] = host
        host.furnish(self._images[spec.release])
        return host

    def _free_port(self, place: Place) -> Port:
        taken = {host.port for host in self._hosts.values()}
        ports = (Port(place, number) for number in HOST_NUMBERS)
        return next(port for port in ports if port not in taken)

    def _tell_names(self) -> None:
        self._controller.know((host.name, host.address) for host in self._hosts.values())
