"""The address at which peers dial a node: one rule, and a reason for every choice.

In this order: `addr` as written; the `[network]` rule; loopback where all ranks are on one machine;
the one subnet that all machines share, of several the one with every machine's default route.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlxdeploy.model.survey import Network
from rlxdeploy.resolve.candidates import (
    Address,
    Against,
    Candidate,
    Subnet,
    candidates,
    plain_address,
)

_WAYS_OUT = "write addr in [[node]], or cidr or interface in [network]"
_UNNAMED = "write a numeric address; a survey saved before the name was written has to be repeated"
_LOOPBACK = "127.0.0.1"

# An error about the addresses of a fleet names a few machines: the reason is mostly the same.
_SHOWN = 4

Found = Mapping[str, tuple[Candidate, ...]]


@dataclass(frozen=True, slots=True)
class Ask:
    """A node on *machine* that needs an address.

    *written* is the host of its `addr`, "" without one; *resolved* are the addresses that the
    controller knows for it if it is a name.
    """

    machine: str
    written: str = ""
    resolved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """What `[network]` says."""

    interface: str | None = None
    cidr: Subnet | None = None

    def takes(self, candidate: Candidate) -> bool:
        """Tell whether the rule means *candidate*."""
        return (self.interface in (None, candidate.interface)) and (
            self.cidr is None or candidate.address in self.cidr
        )

    def __str__(self) -> str:
        parts = [
            f"interface {self.interface}" if self.interface else "",
            f"cidr {self.cidr}" if self.cidr else "",
        ]
        return "[network] " + " and ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class Settled:
    """The address of one node and why, or the problem with it and what to do."""

    address: str = ""
    why: str = ""
    problem: str = ""
    remedy: str = ""


def peer_addresses(
    asks: Sequence[Ask], machines: Mapping[str, Network | None], rule: Rule
) -> list[Settled]:
    """Return what each of *asks* comes to, in their order.

    *machines* are all machines of the group, with None for one that nobody may ask.  The answer
    depends on no order but that of *asks*.
    """
    found = candidates({name: network for name, network in machines.items() if network})
    unwritten = _unwritten(asks, machines, found, rule)
    settled = [_written(ask, found) if ask.written else unwritten[ask.machine] for ask in asks]
    if len(machines) == 1:
        return settled
    return [_from_afar(one, ask, found) for one, ask in zip(settled, asks, strict=True)]


def _written(ask: Ask, found: Found) -> Settled:
    own = {one.address for one in found.get(ask.machine, ())}
    try:
        address, why = plain_address(ask.written), "addr as written"
    except ValueError:
        # A resolver may turn its answers round from one run to the next.
        known = sorted(map(plain_address, ask.resolved), key=_nearness)
        if not known:
            problem = f"the controller has no address for the name {ask.written!r}"
            return Settled(problem=problem, remedy=_UNNAMED)
        near = [one for one in known if one in own and not one.is_loopback]
        address = near[0] if near else known[0]
        why = f"addr {ask.written!r}, resolved by the controller"
    if ask.machine in found and address not in own and not address.is_loopback:
        why += f"; no interface of {ask.machine} has it: NAT, VIP or port forward"
    return Settled(str(address), why)


def _nearness(address: Address) -> tuple[bool, int, int]:
    """Order the addresses of a name: what others can dial first, then as `Candidate.order`."""
    return address.is_loopback or address.is_link_local, address.version, int(address)


def _unwritten(
    asks: Sequence[Ask], machines: Mapping[str, Network | None], found: Found, rule: Rule
) -> dict[str, Settled]:
    """Return what is chosen on each machine where no address is written."""
    silent = {ask.machine for ask in asks if not ask.written}
    wanting = silent & found.keys()
    unknown = Settled(problem="it is not asked for its addresses", remedy="write addr")
    chosen = dict.fromkeys(silent, unknown)
    return chosen | _chosen(wanting, asks, machines, found, rule) if wanting else chosen


def _chosen(
    wanting: set[str],
    asks: Sequence[Ask],
    machines: Mapping[str, Network | None],
    found: Found,
    rule: Rule,
) -> dict[str, Settled]:
    if rule != Rule():
        return {name: _by_rule(name, found[name], rule) for name in wanting}
    if len(machines) == 1:
        return dict.fromkeys(wanting, Settled(_LOOPBACK, "all ranks are on one machine"))
    return _by_subnet(wanting, machines, found, _anchors(asks))


def _by_rule(name: str, found: Sequence[Candidate], rule: Rule) -> Settled:
    for one in found:
        if rule.takes(one) and not (one.against and one.against.forbids(one.address)):
            return Settled(str(one.address), f"{rule}: on {one.interface}")
    has = ", ".join(map(str, found)) or "none that is known"
    return Settled(problem=f"no address of {name} fits {rule}; it has {has}", remedy=_WAYS_OUT)


def _anchors(asks: Sequence[Ask]) -> Mapping[str, list[Address]]:
    """Return the numeric addresses written for each machine: they say which subnet is meant."""
    anchors: dict[str, list[Address]] = {}
    for ask in asks:
        for text in (ask.written, *ask.resolved) if ask.written else ():
            try:
                anchors.setdefault(ask.machine, []).append(plain_address(text))
            except ValueError:
                continue
    return anchors


def _by_subnet(
    wanting: set[str],
    machines: Mapping[str, Network | None],
    found: Found,
    anchors: Mapping[str, list[Address]],
) -> dict[str, Settled]:
    shared = _shared(wanting, machines, found, anchors)
    left, which = _preferred(shared, found)
    if len(left) != 1:
        return dict.fromkeys(wanting, _undecided(left, found))
    (subnet,) = left
    why = f"in {subnet}, the one subnet that all {len(machines)} machines share"
    if len(shared) > 1:
        why = f"in {subnet}, of {len(shared)} shared subnets the {which}"
    return {name: _in_subnet(name, found[name], subnet, why) for name in wanting}


def _in_subnet(name: str, found: Sequence[Candidate], subnet: Subnet, why: str) -> Settled:
    chosen = next(one for one in found if one.subnet == subnet and one.against is None)
    silent = (None, Against.LOOPBACK, Against.LINK_LOCAL)
    passed = [f"{one}: {one.against}" for one in found if one.against not in silent]
    over = f"; passed over {', '.join(passed)}" if passed else ""
    return Settled(str(chosen.address), f"on {chosen.interface} of {name}, {why}{over}")


def _shared(
    wanting: set[str],
    machines: Mapping[str, Network | None],
    found: Found,
    anchors: Mapping[str, list[Address]],
) -> set[Subnet]:
    """Return the subnets all machines share.

    A machine with an address written counts as being in that address's subnets alone; behind NAT,
    or where nobody may ask, it says nothing unless another node of it still wants an address.
    """
    own = {name: {one.subnet for one in few if not one.against} for name, few in found.items()}
    every: set[Subnet] = set().union(*own.values())
    shared = every
    for name in machines:
        mine = own.get(name, every)
        if name in anchors:
            meant = {one for one in mine if any(at in one for at in anchors[name])}
            mine = meant or (mine if name in wanting else every)
        shared = shared & mine
    return shared


def _preferred(shared: set[Subnet], found: Found) -> tuple[set[Subnet], str]:
    """Return what is left of several, and what sets one apart from the others.

    Those of the default routes stay, and of two families on them IPv4.
    """
    routed = {one for one in shared if _is_routed(one, found)} or shared
    fours = {one for one in routed if one.version == 4}  # noqa: PLR2004 - IPv4
    left: set[Subnet] = {*fours} if len(fours) == 1 else routed
    family = "IPv4 one" if left < routed else "one"
    return left, family + (" of the default routes" if routed < shared else "")


def _is_routed(subnet: Subnet, found: Found) -> bool:
    inside = [[one for one in few if one.subnet == subnet] for few in found.values()]
    return all(any(one.routed for one in few) for few in inside if few)


def _undecided(left: set[Subnet], found: Found) -> Settled:
    if left:
        names = ", ".join(sorted(map(str, left)))
        return Settled(problem=f"all machines share several subnets: {names}", remedy=_WAYS_OUT)
    lines = [
        f"{name} has {', '.join(str(one) for one in few if not one.against) or 'none to dial'}"
        for name, few in list(found.items())[:_SHOWN]
    ]
    more = f" and {len(found) - _SHOWN} machines more" if len(found) > _SHOWN else ""
    problem = f"no subnet is shared by all machines: {'; '.join(lines)}{more}"
    return Settled(problem=problem, remedy=_WAYS_OUT)


def _from_afar(settled: Settled, ask: Ask, found: Found) -> Settled:
    """Return *settled*, or a problem if no other machine can dial it."""
    if settled.problem:
        return settled
    address = plain_address(settled.address)
    if not address.is_loopback and "%" not in settled.address:
        return settled
    routable = [str(one.address) for one in found.get(ask.machine, ()) if not one.against]
    said = settled.address if ask.written == settled.address else f"{ask.written!r}"
    problem = f"no other machine can dial {said}" + (
        "" if said == settled.address else f", which is {settled.address}"
    )
    remedy = f"write {' or '.join(routable)}" if routable else "write a routable address"
    return Settled(problem=problem, remedy=remedy)
