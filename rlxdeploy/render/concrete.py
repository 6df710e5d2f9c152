"""The group as an inventory: what was found or chosen, written down, so that it stays so."""

from collections.abc import Iterator, Mapping
from typing import Any

import tomli_w

from rlxdeploy.model.addresses import HostPort, parse_address
from rlxdeploy.model.inventory import Node
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.resolution import Resolution, Seat
from rlxdeploy.model.vocabulary import Policy
from rlxdeploy.render.toml import to_document

Table = dict[str, Any]


def resolve_toml(resolution: Resolution, loaded: Loaded) -> str:
    """Return a TOML inventory whose nodes have all that *resolution* settled written.

    With the same survey it resolves to the same ranks, devices and addresses.  Nodes that were
    left out are not in it, and nothing is left to discover.
    """
    document = to_document(loaded.inventory)
    # Nothing is left to search for; that the nodes show themselves is another matter.
    document.pop("discover", None)
    if loaded.inventory.discover.advertise:
        document["discover"] = {"advertise": True}
    if resolution.placement:
        # What was computed from the survey is written, as a person would.
        document.pop("reserve_ram_gb", None)
        document["placement"] = {"policy": Policy.MANUAL.value}
    document["job"] = {"name": resolution.job} | document.get("job", {})
    moved = dict(_moved(resolution, loaded))
    seats: dict[int, list[Seat]] = {}
    for seat in sorted(resolution.seats, key=lambda one: one.slot):
        seats.setdefault(seat.index, []).append(seat)
    written = zip(document.pop("node", []), loaded.inventory.node, strict=True)
    nodes = [
        _node_text(table)
        for index, (written_table, node) in enumerate(written)
        for table in _tables(written_table, node, seats.get(index, []), moved)
    ]
    head = f"# Job {resolution.job}, resolved by rlxdeploy from {loaded.path.name}.\n"
    return "\n".join([head, tomli_w.dumps(document), *nodes])


def _node_text(table: Table) -> str:
    """Return one `[[node]]`, its keys in the order of the reference; tomli-w would write a list."""
    keys = [key for key in Node.model_fields if key in table]
    plain = {key: table[key] for key in keys if key != "env"}
    env = {"node": {"env": table["env"]}} if table.get("env") else {}
    return "[[node]]\n" + tomli_w.dumps(plain) + ("\n" + tomli_w.dumps(env) if env else "")


def _moved(resolution: Resolution, loaded: Loaded) -> Iterator[tuple[HostPort, str]]:
    """Yield each written address with what it came to: standbys name their principal by it."""
    for seat in reversed(resolution.seats):
        written = loaded.inventory.node[seat.index].addr
        if written and seat.peer and seat.slot == 0:
            yield parse_address(written), str(seat.peer)


def _tables(
    table: Table, node: Node, seats: list[Seat], moved: Mapping[HostPort, str]
) -> Iterator[Table]:
    """Yield the node's tables: one, or one a slot where its ranks do not follow one another."""
    if not node.role.has_rank:
        principal = moved.get(parse_address(node.standby_for)) if node.standby_for else None
        yield table | ({"standby_for": principal} if principal else {})
    elif all(one.rank == seats[0].rank + one.slot for one in seats):
        yield from (_settled(table, one) for one in seats[:1])
    else:
        for seat in seats:
            name = {"name": f"{node.name}-{seat.slot}"} if node.name else {}
            yield _settled(table, seat) | {"slots": 1} | name


def _settled(table: Table, seat: Seat) -> Table:
    settled: Table = {"device": "+".join(seat.devices), "rank": seat.rank}
    if seat.share.layers:
        settled["layers"] = seat.share.layers
    if seat.peer:
        settled["addr"] = str(seat.peer)
    if seat.python:
        settled["python"] = seat.python
    return table | settled
