"""Which device a node runs on: the one written, or the best of those its host reports.

The choice follows upstream's discovery: of the usable devices that are neither cpu nor ane, the one
with the most memory, where 0 counts as all of RAM and the first of equals wins.  Three things are
stricter: vulkan is passed over where cuda or rocm drives the same card, a card in an error state is
never quietly replaced by the cpu, and every device passed over is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rlxdeploy.model.devices import canonical_label, parse_devices
from rlxdeploy.model.survey import Device, Hardware

CPU = "cpu"

# What the survey can see; other labels are the person's word alone.
VISIBLE = frozenset({"cpu", "cuda", "rocm", "vulkan", "metal", "ane"})

_VENDORS = frozenset({"cuda", "rocm"})


@dataclass(frozen=True, slots=True)
class Choice:
    """Labels, primary first; *why* they were taken; *problem* is set where none may be."""

    devices: tuple[str, ...]
    why: str
    problem: str = ""
    remedy: str = ""
    warning: str = ""


def choice(written: str | None, hardware: Hardware) -> Choice:
    """Return the devices *written* for a node, checked, or the best where nobody wrote any."""
    if written is None:
        return best_device(hardware)
    return written_devices(parse_devices(written), hardware)


def written_devices(labels: tuple[str, ...], hardware: Hardware) -> Choice:
    """Check the devices a person wrote against what the host reports."""
    why = "as written in device"
    unseen = [label for label in labels if not _usable(hardware, label)]
    blind = [label for label in unseen if label not in VISIBLE]
    missing = [label for label in unseen if label in VISIBLE]
    if labels[0] in missing:
        reasons = [f"{_named(one)}: {one.error}" for one in _errors(hardware, labels[0])]
        state = "; ".join(reasons) or f"it reports {_reported(hardware)}"
        problem = f"the host has no usable {labels[0]} device ({state})"
        return Choice(labels, why, problem, _remedy(hardware))
    warnings = [f"the survey cannot see {label} devices: taken as written" for label in blind]
    warnings += [f"the host reports no usable {label} device" for label in missing]
    warnings += [text for label in labels for text in troubles(hardware, label)]
    return Choice(labels, why, warning="; ".join(warnings))


def best_device(hardware: Hardware) -> Choice:
    """Return the best device the host reports, cpu where it reports no other."""
    kept, passed = _sorted_out(hardware)
    over = f"; passed over {', '.join(passed)}" if passed else ""
    broken = [one for one in hardware.devices if one.error]
    if not kept and broken:
        states = ", ".join(f"{_named(one)}: {one.error}" for one in broken)
        problem = f"the host's GPU is in an error state ({states}); it is not planned as cpu"
        return Choice((CPU,), f"nothing better{over}", problem, _remedy(hardware))
    if not kept:
        return Choice((CPU,), f"the host reports no other usable device{over}")
    best = max(kept, key=lambda one: memory(one, hardware))
    why = f"the best reported: {_named(best)}{over}"
    warnings = [f"{_named(one)}: {one.error}" for one in broken[:1]]
    return Choice(
        (best.device,), why, warning="; ".join(warnings + troubles(hardware, best.device))
    )


def troubles(hardware: Hardware, label: str) -> list[str]:
    """Return what the host warns of about devices of *label* that can be used, each once."""
    found = (
        f"{_named(one)} may fail: {one.trouble}"
        for one in hardware.devices
        if one.device == label and one.trouble and not one.error
    )
    return list(dict.fromkeys(found))


def usable(hardware: Hardware, label: str) -> tuple[Device, ...]:
    """Return the usable devices of *label*, the biggest first, in the host's order otherwise."""
    found = _usable(hardware, label)
    return tuple(sorted(found, key=lambda one: -memory(one, hardware)))


def memory(device: Device, hardware: Hardware) -> int:
    """Return what a device can hold in bytes: 0 reported means that it shares all of RAM."""
    return device.mem_bytes or hardware.ram_total


def _sorted_out(hardware: Hardware) -> tuple[list[Device], list[str]]:
    """Split the devices into those that may be chosen and the reasons against the others."""
    vendors = {one.device for one in hardware.devices} & _VENDORS
    kept, passed = [], []
    for device in hardware.devices:
        if reason := _against(device, vendors):
            passed.append(f"{_named(device)} ({reason})")
        elif device.device != CPU:
            kept.append(device)
    return kept, passed


def _against(device: Device, vendors: set[str]) -> str:
    try:
        canonical_label(device.device)
    except ValueError:
        return "no known label"
    if device.error or not device.available:
        return device.error or "not available"
    if device.device == "ane":
        return "never taken unasked"
    if device.device == "vulkan" and vendors:
        return f"{min(vendors)} is there"
    return ""


def _usable(hardware: Hardware, label: str) -> list[Device]:
    return [
        one for one in hardware.devices if one.device == label and one.available and not one.error
    ] or ([Device(CPU, hardware.cpu)] if label == CPU else [])


def _errors(hardware: Hardware, label: str) -> Sequence[Device]:
    return [one for one in hardware.devices if one.device == label and one.error]


def _named(device: Device) -> str:
    return f"{device.device} {device.name!r}" if device.name else device.device


def _reported(hardware: Hardware) -> str:
    return ", ".join(dict.fromkeys(one.device for one in hardware.devices)) or "no device at all"


def _remedy(hardware: Hardware) -> str:
    if any("mismatch" in one.error.lower() for one in hardware.devices):
        return 'reboot the host or reload the driver\'s module, or write device = "cpu"'
    return 'repair it, or write device = "cpu"'
