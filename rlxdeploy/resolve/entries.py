"""The nodes that take part, each with its name, its host and the interpreter it wants."""

from dataclasses import dataclass

from rlxdeploy.model.addresses import HostPort, parse_address
from rlxdeploy.model.host import Host
from rlxdeploy.model.inventory import Node
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.locate import KeyPath

CONTROLLER = "local"


@dataclass(frozen=True, slots=True)
class Entry:
    """One node: *index* counts in the inventory, *name* is unique and for people.

    *principal* is the node that a promoted standby takes over from; *port* is the first one its
    ranks are to listen on, None where nobody wrote any.
    """

    index: int
    name: str
    node: Node
    host: Host
    principal: "Entry | None" = None
    port: int | None = None

    @property
    def addr(self) -> HostPort | None:
        """The address as written, parsed."""
        return None if self.node.addr is None else parse_address(self.node.addr)

    def key(self, *steps: str) -> KeyPath:
        """Return the path of one of the node's keys in the inventory."""
        return ("node", self.index, *steps)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The interpreter a node is to run with, and where that is written."""

    program: str
    key: KeyPath
    why: str


def entries(loaded: Loaded) -> tuple[Entry, ...]:
    """Return every node of the inventory, of whatever role, in the order of the file."""
    names: dict[str, int] = {}
    found = []
    for index, node in enumerate(loaded.inventory.node):
        base = node.name or node.ssh or CONTROLLER
        names[base] = count = names.get(base, 0) + 1
        name = base if count == 1 else f"{base}#{count}"
        found.append(Entry(index, name, node, host_of(node), port=_port(loaded, index)))
    return tuple(found)


def _port(loaded: Loaded, index: int) -> int | None:
    """Return the port written for a node: in its `addr`, or in `[discover]` for a found one."""
    addr = loaded.inventory.node[index].addr
    if addr is not None and (port := parse_address(addr).port):
        return port
    asked = index in loaded.found and loaded.written(("discover", "port"))
    return loaded.inventory.discover.port if asked else None


def host_of(node: Node) -> Host:
    """Return the machine that *node* is written for."""
    return Host(CONTROLLER) if node.ssh is None else Host(node.ssh, node.ssh)


def wanted_python(loaded: Loaded, entry: Entry, interpreter: str) -> Wanted:
    """Return the interpreter of *entry*; *interpreter* is the one that runs rlxdeploy.

    On the controller that one is taken where none is written: it is known to work.
    """
    if entry.node.python is not None:
        own = entry.key("python")
        return Wanted(entry.node.python, own, loaded.origin(own))
    key = ("runtime", "python")
    if loaded.written(key):
        return Wanted(loaded.inventory.runtime.python, key, loaded.origin(key))
    if entry.host.is_controller:
        return Wanted(interpreter, key, "unwritten: on the controller, what runs rlxdeploy")
    return Wanted(loaded.inventory.runtime.python, key, "unwritten: the default")
