"""What is wrong with the written nodes, singly and between them."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from rlxdeploy.errors import Finding, Severity
from rlxdeploy.model.addresses import HostPort, parse_address
from rlxdeploy.model.devices import parse_devices
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.vocabulary import Hardening, Policy, Role
from rlxdeploy.model.world import active_nodes, dialled_nodes

_LAST_PORT = 65535


def _any_node(loaded: Loaded) -> Iterator[Finding]:
    inventory = loaded.inventory
    if inventory.discover.is_empty and not active_nodes(inventory):
        what = "no node is active" if inventory.node else "there is no [[node]]"
        yield loaded.finding(("node",), what, "write one, or say in [discover] where to look")


def _names(loaded: Loaded) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for index, node in enumerate(loaded.inventory.node):
        if node.name is None:
            continue
        first = seen.setdefault(node.name, index)
        if first != index:
            other = loaded.place_of(("node", first, "name"))
            yield loaded.finding(
                ("node", index, "name"), f"{node.name!r} is already the node at {other}"
            )


def _pins(loaded: Loaded) -> Iterator[Finding]:
    inventory = loaded.inventory
    for index, node in enumerate(inventory.node):
        if node.rank is not None and not node.role.has_rank:
            yield loaded.finding(("node", index, "rank"), f"a {node.role} node has no rank to pin")
    yield from _pins_past_the_world(loaded)
    pinned: dict[int, int] = {}
    for index, node in active_nodes(inventory):
        for rank in () if node.rank is None else range(node.rank, node.rank + node.slots):
            if (first := pinned.setdefault(rank, index)) != index:
                other = loaded.place_of(("node", first, "rank"))
                message = f"rank {rank} is also pinned at {other}"
                yield loaded.finding(("node", index, "rank"), message)
                break


def _pins_past_the_world(loaded: Loaded) -> Iterator[Finding]:
    nodes = active_nodes(loaded.inventory)
    world = sum(node.slots for _, node in nodes)
    if not loaded.inventory.discover.is_empty:
        return
    for index, node in nodes:
        if node.rank is not None and node.rank + node.slots > world:
            message = f"rank {node.rank + node.slots - 1} does not exist among {world} ranks"
            yield loaded.finding(("node", index, "rank"), message)


def _ports(loaded: Loaded) -> Iterator[Finding]:
    """Refuse two ranks on one written host and port; further slots take the ports that follow."""
    taken: dict[HostPort, int] = {}
    for index, node in dialled_nodes(loaded.inventory):
        if node.addr is None or (base := parse_address(node.addr)).port is None:
            continue
        path = ("node", index, "addr")
        if base.port + node.slots - 1 > _LAST_PORT:
            message = f"{node.slots} slots from port {base.port} on pass {_LAST_PORT}"
            yield loaded.finding(path, message)
        for port in range(base.port, base.port + node.slots):
            rank_at = HostPort(base.host, port)
            if (first := taken.setdefault(rank_at, index)) != index:
                other = loaded.place_of(("node", first, "addr"))
                yield loaded.finding(path, f"{rank_at} is also taken at {other}")
                break


def _addresses(loaded: Loaded) -> Iterator[Finding]:
    """Refuse what cannot be dialled from every machine."""
    nodes = active_nodes(loaded.inventory)
    machines = {node.ssh for _, node in nodes}
    for index, node in dialled_nodes(loaded.inventory):
        if node.addr is None:
            continue
        address = parse_address(node.addr)
        path = ("node", index, "addr")
        if address.is_unspecified:
            yield loaded.finding(
                path,
                f"{address.host} can be listened on but not dialled",
                "write it as bind, and an address of the machine as addr",
            )
        if address.zone and len(machines) > 1:
            yield loaded.finding(
                path,
                f"the zone %{address.zone} means nothing on another machine",
                "write a routable address",
            )


def _standbys(loaded: Loaded) -> Iterator[Finding]:
    principals = {
        parse_address(node.addr) for _, node in active_nodes(loaded.inventory) if node.addr
    }
    for index, node in enumerate(loaded.inventory.node):
        if node.standby_for is None:
            continue
        path = ("node", index, "standby_for")
        if node.role is not Role.STANDBY:
            finding = loaded.finding(path, f"it has no effect: role is {node.role}")
            yield replace(finding, severity=Severity.WARNING)
        elif (
            loaded.inventory.discover.is_empty and parse_address(node.standby_for) not in principals
        ):
            yield loaded.finding(path, f"no active node has the addr {node.standby_for!r}")


def _manual_layers(loaded: Loaded) -> Iterator[Finding]:
    if loaded.inventory.placement.policy is not Policy.MANUAL:
        return
    for index, node in active_nodes(loaded.inventory):
        if node.layers is None:
            yield loaded.finding(("node", index, "layers"), "policy manual needs it on every node")


def _hardening(loaded: Loaded) -> Iterator[Finding]:
    if loaded.inventory.job.hardening is not Hardening.STRICT:
        return
    for index, node in active_nodes(loaded.inventory):
        if node.device is not None and (hidden := set(parse_devices(node.device)) - {"cpu"}):
            finding = loaded.finding(
                ("node", index, "device"),
                f"hardening strict hides {', '.join(sorted(hidden))} from the ranks",
                'write hardening = "gpu" in [job]',
            )
            yield replace(finding, severity=Severity.WARNING)


NODE_CHECKS: tuple[Callable[[Loaded], Iterator[Finding]], ...] = (
    _any_node,
    _names,
    _pins,
    _ports,
    _addresses,
    _standbys,
    _manual_layers,
    _hardening,
)
