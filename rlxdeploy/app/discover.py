"""The search that `[discover]` asks for: aliases, a subnet, and who announces himself."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import Doing, Say
from rlxdeploy.edge.gather import looked_up
from rlxdeploy.edge.here import own_network
from rlxdeploy.edge.scan import Progress, Scan, ScanLimits, scan
from rlxdeploy.errors import Finding, Severity
from rlxdeploy.facts.mdns import SSH, Announced, Heard, askable, named, sort_out
from rlxdeploy.facts.refusals import counted, lacks
from rlxdeploy.facts.sweep import Subnet, sweep
from rlxdeploy.model.cidr import parse_cidr
from rlxdeploy.model.found import Found
from rlxdeploy.model.host import Host
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.record import HostRecord
from rlxdeploy.model.survey import Interface, Network
from rlxdeploy.resolve.aliases import alias_of, port_to_dial
from rlxdeploy.resolve.entries import CONTROLLER
from rlxdeploy.resolve.recall import address_order, missed, recalled, remembered
from rlxdeploy.resolve.sift import Sifted, excluded, names_excluded, sifted

_HERE = Host(CONTROLLER)
_SSH_PORT = 22

_LIST = "list the machines in ssh_hosts"

# Below that nobody wonders how long it will take.
_LONG_S = 5.0


class SearchInterrupted(KeyboardInterrupt):
    """Ctrl-C during the search; the message says what was found so far."""


def discover(loaded: Loaded, lab: Lab, say: Say, recorded: Iterable[HostRecord] = ()) -> Sifted:
    """Return the found hosts to survey, in the order in which they become nodes.

    Those of *recorded*, the hosts of the last apply, that `[discover]` still means are among them
    whether they answer this time or not.  Raises HostError where this machine cannot search, and
    SearchInterrupted.
    """
    wanted = loaded.inventory.discover
    search = _Search(loaded, lab, say)
    search.found += (Found(alias, "ssh_hosts") for alias in wanted.ssh_hosts)
    without = excluded(loaded, looked_up(names_excluded(loaded)))
    if wanted.subnet or wanted.mdns:
        here = own_network(_HERE)
        if wanted.subnet:
            search.scan(wanted.subnet, here, without.subnets)
        if wanted.mdns:
            search.browse(here)
    known = remembered(loaded, recorded, without)
    result = sifted(loaded, recalled(search.found, known), without)
    silent = missed(loaded, search.found, result.found)
    return Sifted(result.found, [*search.notices, *result.notices, *silent])


@dataclass(slots=True)
class _Search:
    """One search: what it has *found*, and what else there is to say."""

    loaded: Loaded
    lab: Lab
    say: Say
    found: list[Found] = field(default_factory=list)
    notices: list[Finding] = field(default_factory=list)

    def scan(self, subnet: str, here: Network, without: tuple[Subnet, ...]) -> None:
        """Find the addresses of *subnet* that answer, in their order."""
        wanted = self.loaded.inventory.discover
        addresses = sweep(parse_cidr(subnet).network, here, without)
        limits, ports = ScanLimits(timeout=wanted.timeout_ms / 1000), self._ports()
        done = scan(addresses, ports, limits, self._tell, self.lab.stop)
        self.found += (self._answered(address, told) for address, told in done.found.items())
        if done.interrupted:
            self._interrupted(f"{done.tried} of {done.total} connects tried")
        for lack in lacks(done.failed):
            what = f"{lack.count} of {done.total} connects to {subnet} could not be tried"
            self._tell_of("subnet", f"{what}: {lack.why}", Severity.WARNING, lack.remedy)
        if not done.found:
            self._nothing("subnet", _silence(subnet, ports, done))
        elif done.failed:
            self._tell_of("subnet", _tally(subnet, ports, done))

    def browse(self, here: Network) -> None:
        """Find who announces himself on the links of this machine, in the order of addresses."""
        only = self.loaded.inventory.network.interface
        asked = askable(here, only)
        if not asked:
            which = f"interface {only}" if only else "interface with a link to other machines"
            self._nothing("mdns", f"no {which} is up here, so nobody was asked by mDNS")
            return
        heard, failed = self._heard(asked)
        for name, why in failed.items():
            self._tell_of("mdns", f"{name} could not be asked by mDNS: {why}", Severity.WARNING)
        asked = tuple(one for one in asked if one.name not in failed)
        for address in sorted(heard.hosts, key=address_order):
            one = heard.hosts[address]
            # Who announces another service says nothing of SSH.
            port = (one.port if one.service == SSH else 0) or self._usual
            alias = alias_of(address, port, self._usual)
            self.found.append(Found(alias, "mdns", address, one.instance))
        if self.lab.stop.is_set():
            self._interrupted("mDNS not heard out")
        for one in heard.dropped:
            self._tell_of("mdns", f"{one} is passed over: {_strangeness(one, asked)}")
        if asked and not heard.hosts:
            seconds = self.loaded.inventory.discover.browse_s
            self._nothing("mdns", f"nobody answered by mDNS on {named(asked)} in {seconds:g} s")

    def _heard(self, asked: tuple[Interface, ...]) -> tuple[Heard, Mapping[str, str]]:
        """Return who is believed, and why interfaces could not be asked on."""
        # Imported when needed: nobody else pays for loading it.
        from rlxdeploy.edge.mdns import browse  # noqa: PLC0415 - as said above

        self.say(Doing("mDNS", 0, 1, note=f"listening on {named(asked)}"))
        done = browse(asked, self.loaded.inventory.discover.browse_s, self.lab.stop)
        heard = sort_out(done.answers, asked)
        self.say(Doing("mDNS", 1, 1, note=f"{len(heard.hosts)} hosts found"))
        return heard, done.failed

    @property
    def _usual(self) -> int:
        """The port that SSH dials where an alias names none, as far as the inventory says."""
        return self.loaded.inventory.ssh.port or _SSH_PORT

    def _ports(self) -> tuple[int, ...]:
        """Return the ports that mark a host: as written, else the one SSH is told to use."""
        if self.loaded.written(("discover", "scan_ports")):
            return self.loaded.inventory.discover.scan_ports
        return (self._usual,)

    def _answered(self, address: str, ports: Collection[int]) -> Found:
        """Return a host that answers on *ports*, dialled on the first written one that is SSH's."""
        stage = self.loaded.inventory.discover.port
        in_order = (port for port in self._ports() if port in ports)
        port = port_to_dial(in_order, self._usual, stage)
        return Found(alias_of(address, port, self._usual), "subnet", address)

    def _tell(self, now: Progress) -> None:
        left = f", about {now.left:.0f} s left" if now.left >= _LONG_S else ""
        self.say(Doing("scan", now.done, now.total, note=f"{now.found} hosts found{left}"))

    def _tell_of(
        self, key: str, what: str, severity: Severity = Severity.NOTICE, remedy: str = ""
    ) -> None:
        finding = self.loaded.finding(("discover", key), what, remedy)
        self.notices.append(replace(finding, severity=severity))

    def _nothing(self, key: str, what: str) -> None:
        listed = self.loaded.inventory.discover.ssh_hosts
        remedy = "those in ssh_hosts are asked all the same" if listed else _LIST
        self._tell_of(key, what, Severity.WARNING, remedy)

    def _interrupted(self, how_far: str) -> None:
        so_far = ", ".join(map(str, self.found)) or "no host"
        raise SearchInterrupted(f"interrupted ({how_far}); found so far: {so_far}")


def _silence(subnet: str, ports: tuple[int, ...], done: Scan) -> str:
    took = f"{done.total} tried in {done.seconds:.1f} s"
    return f"nothing in {subnet} answers on {_ports(ports)} ({took}; {counted(done.failed)})"


def _tally(subnet: str, ports: tuple[int, ...], done: Scan) -> str:
    answering = sum(map(len, done.found.values()))
    what = f"{answering} of {done.total} connects to {_ports(ports)} in {subnet} were answered"
    return f"{what} ({counted(done.failed)})"


def _ports(ports: tuple[int, ...]) -> str:
    return f"{'port' if len(ports) == 1 else 'ports'} {', '.join(map(str, ports))}"


def _strangeness(one: Announced, asked: Iterable[Interface]) -> str:
    """Return why nobody is to be dialled by what *one* said."""
    if not one.addresses:
        return f"it did not tell its address on {one.interface} in time; a longer browse_s may help"
    heard_on = [link for link in asked if link.name == one.interface]
    return f"it announces {', '.join(one.addresses)}, and was heard on {named(heard_on)}"
