"""The group as an inventory: what was found or chosen, written down, so that it stays so."""

from collections.abc import Iterator
from typing import Any

import tomli_w

from rlxdeploy.model.addresses import HostPort, parse_address
from rlxdeploy.model.inventory import Node
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.resolution import Resolution, Seat

Table = dict[str, Any]


def resolve_toml(resolution: Resolution, loaded: Loaded) -> str:
    """Return a TOML inventory whose nodes have all that *resolution* settled written.

    With the same survey it resolves to the same ranks, devices and addresses.  Nodes that were
    left out are not in it, and nothing is left to discover.
    """
    document = _dumped(loaded.inventory)
    document.pop("discover", None)
    document.pop("node", None)
    document["job"] = {"name": resolution.job} | document.get("job", {})
    moved = dict(_moved(resolution, loaded))
    document["node"] = [
        table
        for index, node in enumerate(loaded.inventory.node)
        for table in _tables(node, [one for one in resolution.seats if one.index == index], moved)
    ]
    head = f"# Job {resolution.job}, resolved by rlxdeploy from {loaded.path.name}.\n\n"
    return head + tomli_w.dumps(document)


def _dumped(model: Any) -> Table:  # noqa: ANN401 - any table of an inventory
    dumped: Table = model.model_dump(
        mode="json", by_alias=True, exclude_unset=True, exclude_none=True
    )
    return dumped


def _moved(resolution: Resolution, loaded: Loaded) -> Iterator[tuple[HostPort, str]]:
    """Yield each written address with what it came to: standbys name their principal by it."""
    for seat in reversed(resolution.seats):
        written = loaded.inventory.node[seat.index].addr
        if written and seat.peer and seat.slot == 0:
            yield parse_address(written), str(seat.peer)


def _tables(node: Node, seats: list[Seat], moved: dict[HostPort, str]) -> Iterator[Table]:
    """Yield the node's tables: one, or one a slot where its ranks do not follow one another."""
    dumped = _dumped(node)
    if not node.role.has_rank:
        if node.standby_for and (principal := moved.get(parse_address(node.standby_for))):
            dumped["standby_for"] = principal
        yield dumped
        return
    seats = sorted(seats, key=lambda one: one.slot)
    if all(one.rank == seats[0].rank + one.slot for one in seats):
        yield from (_written(dumped, one) for one in seats[:1])
        return
    for seat in seats:
        name = {"name": f"{node.name}-{seat.slot}"} if node.name else {}
        yield _written(dumped, seat) | {"slots": 1} | name


def _written(dumped: Table, seat: Seat) -> Table:
    settled: Table = {"device": "+".join(seat.devices), "rank": seat.rank}
    if seat.peer:
        settled["addr"] = str(seat.peer)
    if seat.python:
        settled["python"] = seat.python
    return dumped | settled
