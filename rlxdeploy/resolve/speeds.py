"""Measured speeds outlive the survey that measured them: by machine, whatever it is called.

A plan measures nobody.  What `probe --bench` has measured is given to the machines of later
surveys, as long as they are the same ones with the same devices.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rlxdeploy.facts import bench
from rlxdeploy.model.speeds import MachineSpeeds, Speeds
from rlxdeploy.model.survey import Device, HostFacts, Survey
from rlxdeploy.resolve.machines import own_macs


def speeds_of(survey: Survey) -> Iterator[MachineSpeeds]:
    """Yield what *survey* has measured, one a machine."""
    for facts in survey.hosts.values():
        hardware = facts.hardware
        if hardware.measured_at:
            fast = {_key(one): one.gflops for one in hardware.devices if one.gflops}
            yield MachineSpeeds(*_identity(facts), hardware.measured_at, fast, hardware.io_mbps)


def renewed(kept: Speeds, fresh: Iterable[MachineSpeeds]) -> Speeds:
    """Return *kept* with what was measured anew in place of what it had of the same machines."""
    now = tuple(fresh)
    others = (
        one for one in kept.machines if not any(one.is_of(new.machine, new.macs) for new in now)
    )
    return replace(kept, machines=(*others, *now))


def with_speeds(survey: Survey, kept: Speeds) -> Survey:
    """Return *survey* with the speeds that are *kept* of its machines, where it has none."""
    hosts = {
        name: facts if facts.hardware.measured_at else _with(facts, kept)
        for name, facts in survey.hosts.items()
    }
    return replace(survey, hosts=hosts)


def _with(facts: HostFacts, kept: Speeds) -> HostFacts:
    identity = _identity(facts)
    found = next((one for one in kept.machines if one.is_of(*identity)), None)
    if found is None:
        return facts
    fast = {
        (one.device, one.ident): found.gflops[key]
        for one in facts.hardware.devices
        if (key := _key(one)) in found.gflops
    }
    hardware = bench.measured(facts.hardware, bench.Speeds(fast, found.io_mbps))
    return replace(facts, hardware=replace(hardware, measured_at=found.measured_at))


def _identity(facts: HostFacts) -> tuple[str, tuple[str, ...]]:
    """Return what stays of a machine when it starts anew; its name where it has no machine-id."""
    platform = facts.platform
    return platform.machine_id or platform.hostname, tuple(sorted(own_macs(facts)))


def _key(device: Device) -> str:
    return " ".join(filter(None, (device.device, device.ident, device.name)))
