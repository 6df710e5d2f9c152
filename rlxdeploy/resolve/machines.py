"""Which hosts are one machine under several names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.survey import HostFacts, Interface, Survey
from rlxdeploy.resolve.entries import entries

# Interfaces that containers and virtual machines make for themselves; copies of them are alike.
MADE = ("veth", "docker", "br-", "virbr", "cni")
_NOT_ITS_OWN = frozenset({"loopback", "bridge", "tunnel"})

# The machine-id, the boot-id and the MAC of one interface.
_Identity = tuple[str, str, str]


def in_file_order(survey: Survey, loaded: Loaded) -> Survey:
    """Return *survey* with its hosts as the inventory names them, then the others by name.

    So nothing that follows depends on who answered first.
    """
    named = dict.fromkeys(entry.host.name for entry in entries(loaded))
    order = [*named, *sorted(survey.hosts.keys() - named.keys())]
    return replace(
        survey, hosts={name: survey.hosts[name] for name in order if name in survey.hosts}
    )


def merged(survey: Survey) -> dict[str, str]:
    """Map each host that is another one's machine to that other, the first of the survey.

    One machine has one machine-id, one boot-id and one MAC at least in common; less is a copy.
    Two names that share no MAC are one machine all the same where a third shares one with each.
    """
    parts: dict[_Identity, _Part] = {}
    for name, facts in survey.hosts.items():
        part = _Part((name,), frozenset(_identities(facts)))
        for other in {parts[identity] for identity in part.identities if identity in parts}:
            part = _Part((*part.names, *other.names), part.identities | other.identities)
        parts |= dict.fromkeys(part.identities, part)
    place = {name: number for number, name in enumerate(survey.hosts)}
    groups = [sorted(part.names, key=place.__getitem__) for part in dict.fromkeys(parts.values())]
    return {other: first for first, *others in groups for other in others}


@dataclass(frozen=True, slots=True)
class _Part:
    """The names of one machine, and all that it is known by."""

    names: tuple[str, ...]
    identities: frozenset[_Identity]


def lookalikes(survey: Survey, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of hosts with one machine-id that are taken for two machines all the same."""
    firsts: dict[str, str] = {}
    for name, facts in survey.hosts.items():
        machine = facts.platform.machine_id
        if machine and name not in names and (first := firsts.setdefault(machine, name)) != name:
            yield first, name


def is_made(interface: Interface) -> bool:
    """Tell whether it is an interface by whose name or kind no other machine is reached."""
    return interface.name.startswith(MADE) or interface.kind in {"loopback", "bridge"}


def _identities(facts: HostFacts) -> Iterator[_Identity]:
    machine, boot = facts.platform.machine_id, facts.platform.boot_id
    if not machine or not boot:
        return
    yield from ((machine, boot, mac) for mac in own_macs(facts))


def own_macs(facts: HostFacts) -> Iterator[str]:
    """Yield the MACs that no other machine has."""
    for interface in facts.network.interfaces:
        own = interface.kind not in _NOT_ITS_OWN and not interface.name.startswith(MADE)
        if own and interface.mac.strip("0:"):
            yield interface.mac.lower()
