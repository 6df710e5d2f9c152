"""The rules, and what they find on all hosts of one survey."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rlxdeploy.errors import Severity
from rlxdeploy.model.checkup import Ailment, Checkup
from rlxdeploy.model.found import Found
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.survey import HostFacts, Survey
from rlxdeploy.resolve.checkup import hosts, means, wiring
from rlxdeploy.resolve.checkup.patient import Asked, Patient, Rule
from rlxdeploy.resolve.entries import Entry, entries
from rlxdeploy.resolve.machines import in_file_order, merged
from rlxdeploy.resolve.targets import asked_pythons

RULES: Sequence[Rule] = (
    hosts.plan_ability,
    hosts.best_launch,
    hosts.noise,
    hosts.clock,
    means.disk,
    means.ports,
    means.devices,
)

_WORST_FIRST = tuple(Severity)


def examine(loaded: Loaded, survey: Survey, asked: Asked, interpreter: str = "python3") -> Checkup:
    """Return all that the rules find, the worst first and then in the order of the inventory.

    A machine under several names is looked at once.  *interpreter* is the one that runs rlxdeploy,
    as for `targets`.
    """
    same = merged(in_file_order(survey, loaded))
    hosts = {name: facts for name, facts in survey.hosts.items() if name not in same}
    survey = replace(survey, hosts=hosts)
    patients = [
        Patient(loaded, facts, own, asked, python, alone=len(loaded.inventory.node) == 1)
        for facts, own, python in _machines(loaded, survey, same, interpreter)
    ]
    found = [
        *wiring.unreached(survey, _aliases(loaded)),
        *(ailment for one in patients for ailment in _of(one)),
        *wiring.frames(survey),
        *(Ailment(one.severity, "", "search", str(one)) for one in survey.notices),
    ]
    found.sort(key=lambda one: _WORST_FIRST.index(one.severity))
    names = tuple(dict.fromkeys([*survey.hosts, *survey.failed]))
    return Checkup(loaded.job, names, tuple(dict.fromkeys(found)))


def _of(one: Patient) -> Iterator[Ailment]:
    for rule in RULES:
        yield from rule(one)


def _aliases(loaded: Loaded) -> Mapping[str, str | None]:
    """Return the hosts that a plan cannot do without, each with what `ssh` is told."""
    return {
        entry.host.name: entry.host.ssh
        for entry in entries(loaded)
        if entry.node.managed and _is_member(loaded.found.get(entry.index))
    }


def _is_member(found: Found | None) -> bool:
    """Tell whether a node is written, or has ranks since the last apply."""
    return found is None or bool(found.ranks)


def _machines(
    loaded: Loaded, survey: Survey, same: Mapping[str, str], interpreter: str
) -> Iterator[tuple[HostFacts, tuple[Entry, ...], str]]:
    """Yield each machine with its nodes, under whatever name, and the Python that was asked."""
    written: dict[str, list[Entry]] = {}
    for entry in entries(loaded):
        if entry.node.managed:
            name = same.get(entry.host.name, entry.host.name)
            written.setdefault(name, []).append(entry)
    pythons = asked_pythons(loaded, interpreter)
    for name, facts in survey.hosts.items():
        yield facts, tuple(written.get(name, ())), pythons.get(name, interpreter)
