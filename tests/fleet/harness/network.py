"""The run's wires: a bridge for each place, a namespace for each host, cables between.

    controller .1 ── lan 10.77.0.0/24 ── hosts, bastion ── .1 inner 10.77.1.0/24 ── hosts
                         └── .254 router ── .1 nat 10.77.2.0/24 ── hosts

Nothing has a way out: none of these interfaces stands in the machine's own namespace, so
addresses need not differ between runs. IPv6 runs beside, as fd77:0:0:PLACE::HOST.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tests.fleet.harness.local import run
from tests.fleet.harness.spec import Place

# Below are the controller and the bastion's inner side, above the router.
HOST_NUMBERS = range(11, 251)
_GATEWAY = 1
_ROUTER = 254
_FORWARDED = 22000


@dataclass(frozen=True, slots=True)
class Port:
    """Where a host's cable ends: a place and the host's number there."""

    place: Place
    number: int

    @property
    def ipv4(self) -> str:
        return f"10.77.{_index(self.place)}.{self.number}"

    @property
    def ipv6(self) -> str:
        return f"fd77:0:0:{_index(self.place)}::{self.number}"

    @property
    def mac(self) -> str:
        return f"02:77:00:00:{_index(self.place):02x}:{self.number:02x}"

    @property
    def cable(self) -> str:
        """The interface at the bridge's end."""
        return f"port{self.number}"

    @property
    def ssh(self) -> tuple[str, int]:
        """Where sshd is reached: by the controller, or by the bastion for its inner place."""
        if self.place == "nat":
            return Port("lan", _ROUTER).ipv4, _FORWARDED + self.number
        return self.ipv4, 22


BASTION_INNER = Port("inner", _GATEWAY)


class Network:
    """The bridges of a run and the cables between them and its hosts' namespaces."""

    def __init__(self, token: str) -> None:
        self.token = token
        self._built: set[Place] = set()

    def namespace(self, host: str) -> str:
        """Return the name of the host's network namespace."""
        return f"{self.token}-{host}"

    def switch(self, place: Place) -> str:
        """Return the namespace that holds the bridge of *place*; for lan, the controller's."""
        return f"{self.token}-switch-{place}"

    def build(self, place: Place) -> None:
        """Make sure that the bridge of *place* stands, and what it needs to be of use."""
        if place in self._built:
            return
        self._built.add(place)
        switch = self.switch(place)
        _add_namespace(switch)
        _ip(switch, "link add br0 type bridge mcast_snooping 0", "link set br0 up")
        # The inner place has no address of the switch's own: its gateway is the bastion.
        if place != "inner":
            _ip(switch, *_addresses("br0", Port(place, _GATEWAY)))
        if place == "nat":
            self._build_router(switch)

    def plug(self, host: str, port: Port) -> None:
        """Make the namespace of *host*, with a cable into a place and a default route there."""
        self.build(port.place)
        _add_namespace(self.namespace(host))
        self._cable(self.namespace(host), "eth0", port)
        gateway = Port(port.place, _GATEWAY)
        _ip(self.namespace(host), *_default_routes(gateway))

    def plug_inner(self, bastion: str) -> None:
        """Give the bastion its second cable, into the place that it alone reaches."""
        self.build("inner")
        self._cable(self.namespace(bastion), "eth1", BASTION_INNER)

    def unplug(self, host: str, ports: Sequence[Port]) -> None:
        """Take the namespace of *host* away with all that it knew of connections."""
        for port in ports:
            _ip(self.switch(port.place), f"link delete {port.cable}")
        run(("ip", "netns", "delete", self.namespace(host)))

    def carrier(self, port: Port, state: Literal["up", "down"]) -> None:
        """Pull the cable at the bridge's end, or put it back."""
        _ip(self.switch(port.place), f"link set {port.cable} {state}")

    def reaches(self, port: Port) -> bool:
        """Say whether the switch, and so the controller, gets a connection to *port*'s sshd."""
        dial = ("timeout", "1", "bash", "-c", f"exec 3<>/dev/tcp/{port.ipv4}/22")
        inside = ("ip", "netns", "exec", self.switch(port.place))
        return run((*inside, *dial), check=False).returncode == 0

    def _build_router(self, router: str) -> None:
        uplink = Port("lan", _ROUTER)
        self.build("lan")
        self._cable(router, "eth0", uplink)
        inside = ("ip", "netns", "exec", router)
        run((*inside, "sysctl", "--quiet", "net.ipv4.ip_forward=1"))
        forwards = (
            f"-A PREROUTING -i eth0 -p tcp --dport {port.ssh[1]} -j DNAT --to {port.ipv4}:22"
            for port in (Port("nat", number) for number in HOST_NUMBERS)
        )
        nat = ("*nat", *forwards, "-A POSTROUTING -o eth0 -j MASQUERADE", "COMMIT")
        # A neighbour that knows the hosts' own addresses does not get in by them either.
        answers = "-A FORWARD -i eth0 -m conntrack --ctstate ESTABLISHED,DNAT -j ACCEPT"
        closed = ("*filter", answers, "-A FORWARD -i eth0 -j DROP", "COMMIT", "")
        run((*inside, "iptables-restore"), stdin="\n".join((*nat, *closed)))

    def _cable(self, namespace: str, interface: str, port: Port) -> None:
        switch = self.switch(port.place)
        peer = f"peer name {interface} netns {namespace} address {port.mac}"
        _ip(
            switch,
            f"link add {port.cable} type veth {peer}",
            f"link set {port.cable} master br0 up",
        )
        _ip(namespace, *_addresses(interface, port), f"link set {interface} up")


def _index(place: Place) -> int:
    return get_args(Place).index(place)


def _add_namespace(name: str) -> None:
    run(("ip", "netns", "add", name))
    _ip(name, "link set lo up")


def _addresses(interface: str, port: Port) -> tuple[str, str]:
    # Without nodad an IPv6 address may not be used for its first second or two.
    v6 = f"address add {port.ipv6}/64 dev {interface} nodad"
    return f"address add {port.ipv4}/24 dev {interface}", v6


def _default_routes(gateway: Port) -> tuple[str, str]:
    return f"route add default via {gateway.ipv4}", f"route add default via {gateway.ipv6}"


def _ip(namespace: str, *commands: str) -> None:
    run(("ip", "-n", namespace, "-batch", "-"), stdin="\n".join(commands) + "\n")
