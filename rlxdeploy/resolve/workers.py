"""What upstream's workers say of their nodes: NodeCaps, made of a survey and read in place of one.

They are enough for a device, an address and a share of the layers.  They say nothing of Python,
init or what is deployed, so such a node is planned as one that runs elsewhere, and that is told.
"""

from collections.abc import Mapping
from dataclasses import replace

from rlxdeploy.errors import Finding, Severity
from rlxdeploy.facts.caps import NodeCaps, caps
from rlxdeploy.model.addresses import HostPort, parse_address
from rlxdeploy.model.found import Found
from rlxdeploy.model.host import Host
from rlxdeploy.model.inventory import Node
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.locate import KeyPath
from rlxdeploy.model.survey import Hardware, Survey
from rlxdeploy.resolve.aliases import bare_host
from rlxdeploy.resolve.discovery import with_nodes
from rlxdeploy.resolve.entries import Entry, entries

_LOOPBACK = "127.0.0.1"
_ALONE = "is known by its NodeCaps alone, and planned as one that runs elsewhere"
_SURVEY = "survey it (probe --out FILE) for its files and units to be planned"


def with_workers(loaded: Loaded, said: Mapping[str, NodeCaps]) -> Loaded:
    """Return the inventory with what *said* tells of its nodes, by their `addr` or their host.

    Who is told of becomes unmanaged, with a warning.  Who is no written node has been found, if
    `[discover]` looks for any, and is passed over with a warning otherwise.
    """
    strangers = said.keys() - {_key(loaded, entry, said) for entry in entries(loaded)}
    looks = not loaded.inventory.discover.is_empty
    found = [_found(loaded, key) for key in said if key in strangers] if looks else []
    whole = with_nodes(loaded, found)
    nodes, told, notices = [*whole.inventory.node], dict[int, Hardware](), [*loaded.notices]
    for entry in entries(whole):
        if (key := _key(whole, entry, said)) is None:
            continue
        told[entry.index] = said[key].hardware(entry.node.ckpt_dir or "")
        nodes[entry.index] = _elsewhere(entry.node, said[key])
        if entry.node.managed:
            notices.append(_warning(whole, entry.key("managed"), f"{entry.name} {_ALONE}", _SURVEY))
    if strangers and not looks:
        what = f"NodeCaps of {', '.join(sorted(strangers))} belong to no node"
        notices.append(_warning(loaded, ("node",), what, "write a [[node]] with that addr"))
    inventory = whole.inventory.model_copy(update={"node": tuple(nodes)})
    return replace(whole, inventory=inventory, told=told, notices=tuple(notices))


def as_workers(loaded: Loaded, survey: Survey) -> dict[str, NodeCaps]:
    """Return what upstream's workers would say on the surveyed hosts, by the hosts' names.

    A worker's address is the one it is dialled at: as written, or else its host and port.  Found
    hosts that are no node after all have no worker.
    """
    first = {entry.host.name: entry for entry in reversed(entries(loaded))}
    passed_over = {one.ssh for one in survey.found} - first.keys()
    found = {}
    for name in (one for one in survey.hosts if one not in passed_over):
        facts = survey.hosts[name]
        folder = next(iter(facts.hardware.disk_free), "/")
        found[name] = caps(facts, _addr(loaded, facts.host, first.get(name)), folder)
    return found


def _addr(loaded: Loaded, host: Host, entry: Entry | None) -> str:
    port = (entry.port if entry else None) or loaded.inventory.network.data_port
    if entry and entry.addr:
        return str(HostPort(entry.addr.host, port))
    return str(HostPort(bare_host(host.ssh) if host.ssh else _LOOPBACK, port))


def _warning(loaded: Loaded, key: KeyPath, what: str, remedy: str) -> Finding:
    return replace(loaded.finding(key, what, remedy), severity=Severity.WARNING)


def _found(loaded: Loaded, key: str) -> Found:
    """Return the host that is told of under *key*: one of `ssh_hosts`, or else of the subnet."""
    try:
        host = parse_address(key).host
    except ValueError:
        host = key
    discover = loaded.inventory.discover
    alias = next((one for one in discover.ssh_hosts if bare_host(one) == host), None)
    by = "ssh_hosts" if alias else "subnet" if discover.subnet else "mdns"
    return Found(alias or host, by)


def _key(loaded: Loaded, entry: Entry, said: Mapping[str, NodeCaps]) -> str | None:
    """Return under which key the capabilities of a node stand: its host's name, or its address.

    Upstream gives a host without an address its alias and the stage port.
    """
    if entry.host.name in said:
        return entry.host.name
    own = entry.addr
    if own is None and entry.node.ssh:
        own = HostPort(bare_host(entry.node.ssh), loaded.inventory.discover.port)
    return next((key for key, one in said.items() if own and _dialled(one.addr) == own), None)


def _elsewhere(node: Node, said: NodeCaps) -> Node:
    addr = node.addr or (str(dialled) if (dialled := _dialled(said.addr)) else None)
    return node.model_copy(update={"managed": False} | ({"addr": addr} if addr else {}))


def _dialled(addr: str) -> HostPort | None:
    """Return a worker's address, None where nobody can dial it, as with the default 0.0.0.0:0."""
    try:
        found = parse_address(addr)
    except ValueError:
        return None
    return None if found.is_unspecified or found.port is None else found
