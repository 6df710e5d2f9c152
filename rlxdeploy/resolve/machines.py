"""Which hosts are one machine under several names."""

from collections.abc import Iterator, Mapping

from rlxdeploy.model.survey import HostFacts, Interface, Survey

# Interfaces that containers and virtual machines make for themselves; copies of them are alike.
MADE = ("veth", "docker", "br-", "virbr", "cni")
_NOT_ITS_OWN = frozenset({"loopback", "bridge", "tunnel"})


def merged(survey: Survey) -> dict[str, str]:
    """Map each host that is another one's machine to that other, the first of the survey.

    One machine has one machine-id, one boot-id and one MAC at least in common; less is a copy.
    """
    firsts: dict[tuple[str, str, str], str] = {}
    names: dict[str, str] = {}
    for name, facts in survey.hosts.items():
        keys = tuple(_identities(facts))
        same = next((firsts[key] for key in keys if key in firsts), name)
        firsts |= {key: same for key in keys if key not in firsts}
        if same != name:
            names[name] = same
    return names


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


def _identities(facts: HostFacts) -> Iterator[tuple[str, str, str]]:
    machine, boot = facts.platform.machine_id, facts.platform.boot_id
    if not machine or not boot:
        return
    for interface in facts.network.interfaces:
        own = interface.kind not in _NOT_ITS_OWN and not interface.name.startswith(MADE)
        if own and interface.mac.strip("0:"):
            yield machine, boot, interface.mac.lower()
