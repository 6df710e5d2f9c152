"""What the written nodes alone say about ranks and addresses, before anyone is asked."""

from collections.abc import Iterator

from rlxdeploy.model.addresses import parse_address
from rlxdeploy.model.inventory import Inventory, Node
from rlxdeploy.model.locate import KeyPath
from rlxdeploy.model.vocabulary import Topology


def active_nodes(inventory: Inventory) -> tuple[tuple[int, Node], ...]:
    """Return the nodes that have ranks, each with its index in the file."""
    return tuple((index, node) for index, node in enumerate(inventory.node) if node.role.has_rank)


def dialled_nodes(inventory: Inventory) -> tuple[tuple[int, Node], ...]:
    """Return the nodes that peers dial: all active ones of a mesh, a star's rank 0 alone."""
    nodes = active_nodes(inventory)
    if inventory.job.topology is Topology.MESH or not nodes:
        return nodes
    pinned = [pair for pair in nodes if pair[1].rank == 0]
    free = [pair for pair in nodes if pair[1].rank is None]
    return tuple((pinned or free)[:1])


def dialled_addresses(inventory: Inventory) -> Iterator[tuple[KeyPath, str]]:
    """Yield each address written for a node that peers dial, its bind too, with the key's path."""
    for index, node in dialled_nodes(inventory):
        for key, address in (("addr", node.addr), ("bind", node.bind)):
            if address is not None:
                yield ("node", index, key), address


def is_on_loopback(address: str) -> bool:
    """Return whether *address* can be reached from its own machine only."""
    return parse_address(address).is_loopback
