"""The search that `[discover]` asks for: aliases, a subnet, and who announces himself."""

from dataclasses import dataclass, field, replace
from ipaddress import ip_address

from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import Doing, Say
from rlxdeploy.edge.gather import looked_up
from rlxdeploy.edge.here import own_network
from rlxdeploy.edge.scan import Progress, Scan, ScanLimits, scan
from rlxdeploy.errors import Finding, Severity
from rlxdeploy.facts.mdns import SSH, Announced, Heard, askable, named, sort_out
from rlxdeploy.facts.sweep import Subnet, sweep
from rlxdeploy.model.cidr import parse_cidr
from rlxdeploy.model.found import Found
from rlxdeploy.model.host import Host
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.survey import Interface, Network
from rlxdeploy.resolve.discovery import Sifted, excluded, names_excluded, sifted
from rlxdeploy.resolve.entries import CONTROLLER

_HERE = Host(CONTROLLER)
_SSH_PORT = 22

# Below that nobody wonders how long it will take.
_LONG_S = 5.0


class SearchInterrupted(KeyboardInterrupt):
    """Ctrl-C during the search; the message says what was found so far."""


def discover(loaded: Loaded, lab: Lab, say: Say) -> Sifted:
    """Return the found hosts to survey, in the order in which they become nodes.

    Raises HostError where this machine cannot search, and SearchInterrupted.
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
    result = sifted(loaded, search.found, without)
    return Sifted(result.found, [*search.notices, *result.notices])


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
        self.found += (Found(address, "subnet", address) for address in done.found)
        if done.interrupted:
            self._interrupted(f"{done.tried} of {done.total} connects tried")
        if not done.found:
            self._nothing("subnet", _silence(subnet, ports, done))

    def browse(self, here: Network) -> None:
        """Find who announces himself on the links of this machine, in the order of addresses."""
        only = self.loaded.inventory.network.interface
        asked = askable(here, only)
        if not asked:
            which = f"interface {only}" if only else "interface with a link to other machines"
            self._nothing("mdns", f"no {which} is up here, so nobody was asked by mDNS")
            return
        heard = self._heard(asked)
        for address in sorted(heard.hosts, key=_order):
            one = heard.hosts[address]
            self.found.append(Found(_alias(address, one), "mdns", address, one.instance))
        if self.lab.stop.is_set():
            self._interrupted("mDNS not heard out")
        for one in heard.dropped:
            known = ", ".join(one.addresses) or "no address"
            what = f"{one} is passed over: it announces {known}, and asked was on {named(asked)}"
            self._tell_of("mdns", what, Severity.NOTICE)
        if not heard.hosts:
            seconds = self.loaded.inventory.discover.browse_s
            self._nothing("mdns", f"nobody answered by mDNS on {named(asked)} in {seconds:g} s")

    def _heard(self, asked: tuple[Interface, ...]) -> Heard:
        # Imported when needed: nobody else pays for loading it.
        from rlxdeploy.edge.mdns import browse  # noqa: PLC0415 - as said above

        self.say(Doing("mDNS", 0, 1, note=f"listening on {named(asked)}"))
        seconds = self.loaded.inventory.discover.browse_s
        heard = sort_out(browse(_HERE, asked, seconds, self.lab.stop), asked)
        self.say(Doing("mDNS", 1, 1, note=f"{len(heard.hosts)} hosts found"))
        return heard

    def _ports(self) -> tuple[int, ...]:
        """Return the ports that mark a host: as written, else the one SSH is told to use."""
        inventory = self.loaded.inventory
        if self.loaded.written(("discover", "scan_ports")):
            return inventory.discover.scan_ports
        return (inventory.ssh.port or _SSH_PORT,)

    def _tell(self, now: Progress) -> None:
        left = f", about {now.left:.0f} s left" if now.left >= _LONG_S else ""
        self.say(Doing("scan", now.done, now.total, note=f"{now.found} hosts found{left}"))

    def _tell_of(self, key: str, what: str, severity: Severity, remedy: str = "") -> None:
        finding = self.loaded.finding(("discover", key), what, remedy)
        self.notices.append(replace(finding, severity=severity))

    def _nothing(self, key: str, what: str) -> None:
        self._tell_of(key, what, Severity.WARNING, "list the machines in ssh_hosts")

    def _interrupted(self, how_far: str) -> None:
        so_far = ", ".join(map(str, self.found)) or "no host"
        raise SearchInterrupted(f"interrupted ({how_far}); found so far: {so_far}")


def _silence(subnet: str, ports: tuple[int, ...], done: Scan) -> str:
    where = f"{'port' if len(ports) == 1 else 'ports'} {', '.join(map(str, ports))}"
    return f"nothing in {subnet} answers on {where} ({done.total} tried in {done.seconds:.1f} s)"


def _alias(address: str, one: Announced) -> str:
    """Return what to dial: the address, and the port where SSH is announced on another one."""
    if one.service != SSH or one.port in (0, _SSH_PORT):
        return address
    return f"ssh://[{address}]:{one.port}" if ":" in address else f"ssh://{address}:{one.port}"


def _order(address: str) -> tuple[int, int]:
    parsed = ip_address(address)
    return parsed.version, int(parsed)
