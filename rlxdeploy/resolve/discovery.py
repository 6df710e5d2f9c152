"""From the hosts that were found to nodes, as a careful person would have written them.

Hand-written nodes stand first and stay as they are.  Found hosts follow in the order in which they
were found, except those that are excluded, are a written node already, or do not let us in; each of
these is told, and none is an error.  One that has ranks since the last apply is a member of the
group: if it does not let us in, it is missed as a written one is.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from rlxdeploy.errors import Severity
from rlxdeploy.model.found import Found
from rlxdeploy.model.inventory import Node
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.locate import KeyPath, Position
from rlxdeploy.model.survey import HostFacts, Survey
from rlxdeploy.model.targets import Targets
from rlxdeploy.resolve.devices import CPU
from rlxdeploy.resolve.machines import in_file_order, is_made, merged
from rlxdeploy.resolve.recall import is_missed
from rlxdeploy.resolve.sift import Excluded, told, unasked_address

# Keys of `[discover]` that a found node has as its own.
_SHARED = ("ckpt_dir", "device", "precision")


def with_nodes(loaded: Loaded, found: Iterable[Found]) -> Loaded:
    """Return the inventory with a node for each of *found*, after the written ones.

    Raises CompileError where an alias is to be a peer address and cannot be one.
    """
    nodes, places, by_index = [*loaded.inventory.node], dict(loaded.places), {}
    for one in found:
        by_index[len(nodes)] = one
        places |= _places(loaded, one, len(nodes))
        nodes.append(_node(loaded, one))
    inventory = loaded.inventory.model_copy(update={"node": tuple(nodes)})
    return replace(loaded, inventory=inventory, places=places, found=by_index)


def settled(loaded: Loaded, survey: Survey, without: Excluded) -> Loaded:
    """Return the inventory with a node for each found host that is to be one.

    What is said of the search, and of each host that is not taken, is among its notices.  A host
    with ranks that does not answer is a node all the same, unless another machine has its ranks.
    """
    whole = with_nodes(loaded, survey.found)
    same = merged(in_file_order(survey, whole))
    taken, notices = [], []
    for one in survey.found:
        if not loaded.inventory.discover.probe or is_missed(one, survey):
            taken.append(one)
        elif (facts := survey.hosts.get(one.ssh)) is None:
            why = survey.failed.get(one.ssh, "not surveyed")
            lost = told(loaded, one, f"{one.how}, not taken: {why}")
            notices.append(replace(lost, severity=Severity.WARNING))
        elif reason := _against(facts, without):
            notices.append(told(loaded, one, f"{one.how}, and excluded: {reason}"))
        elif one.ssh not in same:
            # Of a machine under two names, both are told where machines are merged.
            taken.append(one)
    grown = with_nodes(loaded, taken)
    return replace(grown, notices=(*loaded.notices, *survey.notices, *notices))


def gently(targets: Targets, strangers: Collection[str]) -> Targets:
    """Return *targets* with no sudo tried on *strangers*, and nothing measured: in no plan yet.

    Measuring writes to their disks, and two names of one machine would slow each other down.
    """
    return replace(
        targets,
        targets=tuple(
            replace(one, enquiry=replace(one.enquiry, sudo=False, bench=False))
            if one.host.name in strangers
            else one
            for one in targets.targets
        ),
    )


def asked_again(targets: Targets, survey: Survey, strangers: Collection[str]) -> Targets:
    """Return those of *targets* that were asked gently, will be nodes, and have more to say.

    That is what sudo shows, unless root has answered already, and what they measure.
    """
    again = (
        one
        for one in targets.targets
        if one.host.name in strangers
        and (facts := survey.hosts.get(one.host.name)) is not None
        and (one.enquiry.bench or (one.enquiry.sudo and facts.platform.uid != 0))
    )
    return replace(targets, targets=tuple(again))


def _node(loaded: Loaded, one: Found) -> Node:
    discover = loaded.inventory.discover
    # What nobody wrote is no node's own either, and `resolve` writes it for none.
    shared = {key: getattr(discover, key) for key in _SHARED if key in discover.model_fields_set}
    if discover.probe:
        return Node(ssh=one.ssh, **shared)
    shared["device"] = discover.device or CPU
    return Node(addr=unasked_address(loaded, one), ssh=one.ssh, managed=False, **shared)


def _places(loaded: Loaded, one: Found, index: int) -> Iterator[tuple[KeyPath, Position]]:
    """Yield where the keys of a found node stand: where `[discover]` says what they hold."""
    place, probe = loaded.places.get(("discover", one.by)), loaded.inventory.discover.probe
    if place is not None:
        yield from ((path, place) for path in (("node", index), ("node", index, "ssh")))
    named = dict.fromkeys(_SHARED, "") | ({} if probe else {"port": "addr", "probe": "managed"})
    for key, own in named.items():
        if position := loaded.places.get(("discover", key)):
            yield ("node", index, own or key), position


def _against(facts: HostFacts, without: Excluded) -> str:
    """Return why a surveyed host is excluded after all, "" where it is not."""
    if facts.platform.hostname.lower() in without.names:
        return f"it is called {facts.platform.hostname}"
    for interface in facts.network.interfaces:
        for text in () if is_made(interface) else interface.addresses:
            if without.has(text.partition("/")[0]):
                return f"it has the address {text.partition('/')[0]}"
    return ""
