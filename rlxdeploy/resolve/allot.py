"""Which devices each rank gets, and what the vendor's variable shows it of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlxdeploy.model.devices import parse_devices
from rlxdeploy.model.survey import Device
from rlxdeploy.model.vocabulary import DeviceEnv
from rlxdeploy.resolve.devices import CPU, Choice, best_device, usable, written_devices
from rlxdeploy.resolve.group import Group, Stand
from rlxdeploy.resolve.report import Report

# CUDA shows a process one MIG slice at most: in a list it would take the first, on every rank.
_SLICE = "MIG-"


@dataclass(frozen=True, slots=True)
class Allotted:
    """One rank's device labels, primary first, and what it may see of its host's devices."""

    devices: tuple[str, ...]
    visible: str | None
    why: str


def allot(group: Group, report: Report) -> Mapping[int, Allotted]:
    """Return what each rank gets, by rank; on one machine lower ranks get bigger devices."""
    choices = _choices(group, report)
    sharing: dict[tuple[str, str], list[Stand]] = {}
    for stand in sorted(group.stands, key=lambda one: one.rank):
        primary = choices[stand.entry.index].devices[0]
        sharing.setdefault((stand.machine, primary), []).append(stand)
    found: dict[int, Allotted] = {}
    for (_, label), stands in sharing.items():
        given = _given(label, stands, report)
        for position, stand in enumerate(stands):
            choice = choices[stand.entry.index]
            visible = _visible(given, position, report.loaded.inventory.job.device_env)
            found[stand.rank] = Allotted(
                choice.devices, visible, choice.why + _named(given, position)
            )
    return found


def _choices(group: Group, report: Report) -> Mapping[int, Choice]:
    choices: dict[int, Choice] = {}
    for stand in group.stands:
        entry = stand.entry
        if entry.index in choices:
            continue
        choices[entry.index] = choice = _choice(stand, report)
        if choice.problem:
            report.error(entry.key("device"), f"{entry.name}: {choice.problem}", choice.remedy)
        if choice.warning:
            report.warning(entry.key("device"), f"{entry.name}: {choice.warning}")
    return choices


def _choice(stand: Stand, report: Report) -> Choice:
    written = stand.entry.node.device
    told = report.loaded.told.get(stand.entry.index)
    hardware = stand.facts.hardware if stand.facts else told
    if written is None:
        if hardware is None:
            return Choice((CPU,), "unwritten and not surveyed")
        return best_device(hardware)
    labels, why = parse_devices(written), report.loaded.origin(stand.entry.key("device"))
    if hardware is None:
        return Choice(labels, why)
    return replace(written_devices(labels, hardware), why=why)


def _given(label: str, stands: Sequence[Stand], report: Report) -> tuple[Device, ...]:
    """Return one device for each of *stands*, none where they cannot be told apart."""
    managed = [stand for stand in stands if stand.facts is not None]
    facts = managed[0].facts if managed else None
    if facts is None or label == CPU:
        return ()
    there = usable(facts.hardware, label)
    if len(stands) <= len(there):
        return there[: len(stands)]
    # Where there is none, the choice has been refused already, or the survey cannot see the kind.
    if there:
        last = stands[-1]
        what = f"{len(stands)} ranks on {last.machine} want a {label} device, it has {len(there)}"
        report.error(last.entry.key("slots"), what, 'write fewer slots, or device = "cpu"')
    return ()


def _visible(given: Sequence[Device], position: int, env: DeviceEnv) -> str | None:
    idents = [device.ident for device in given]
    if not all(idents) or not idents:
        return None
    if env is DeviceEnv.ONE or any(ident.startswith(_SLICE) for ident in idents):
        return idents[position]
    return ",".join(idents)


def _named(given: Sequence[Device], position: int) -> str:
    return f"; on {given[position].name}" if given and given[position].name else ""
