"""What a host has for its ranks: room on its disks, free ports, usable devices."""

from collections.abc import Iterator

from rlxdeploy.facts.places import SYSTEM_DATA
from rlxdeploy.model.checkup import Ailment
from rlxdeploy.model.vocabulary import Launch
from rlxdeploy.model.world import dialled_nodes
from rlxdeploy.resolve.checkup.patient import Patient
from rlxdeploy.resolve.devices import choice, troubles
from rlxdeploy.resolve.group import own_addresses
from rlxdeploy.resolve.targets import data_ports

# Where a job lies, by who starts it; a survey for a check-up asks for their free space too.
USER_DATA = "~/.local/share/rlx"
TREES = (SYSTEM_DATA, USER_DATA)

_MIB = 1 << 20
# A release with the runtime is under one MiB, and several are kept.  What the job's own files,
# logs and checkpoints take nobody knows beforehand: so much is soon used up.
_LEAST, _FEW = 16 * _MIB, 100 * _MIB


def disk(one: Patient) -> Iterator[Ailment]:
    """Tell of folders of the job with hardly any room; those that nobody could ask are left out."""
    for folder, free in one.facts.hardware.disk_free.items():
        if free >= _FEW or (folder in TREES and folder != _tree(one)):
            continue
        what = f"{folder} has {free / _MIB:.0f} MiB left"
        remedy = "make room there"
        if free < _LEAST:
            yield one.error("disk", what, f"{remedy}: a release of the job may not fit")
        else:
            yield one.warning("disk", what, remedy)


def _tree(one: Patient) -> str:
    works = one.platform.launches[:1] == (Launch.SYSTEMD.value,)
    wanted = one.loaded.inventory.job.launch
    system = works if wanted is Launch.AUTO else wanted is Launch.SYSTEMD
    return SYSTEM_DATA if system else USER_DATA


def ports(one: Patient) -> Iterator[Ailment]:
    """Tell of strangers on the ports that the host's ranks will listen on."""
    inventory = one.loaded.inventory
    dialled = {index for index, _ in dialled_nodes(inventory)}
    network = inventory.network
    listening = [entry for entry in one.entries if entry.index in dialled]
    own = set(data_ports(listening, network.data_port))
    every = own_addresses(one.facts.network)
    bound = [str(address) for address in every if one.alone or not address.is_loopback]
    for holder in one.facts.holders:
        if not holder.is_stranger or not any(holder.blocks(to, holder.port) for to in bound):
            continue
        what = f"port {holder.port} ({holder.address}) is held by {holder}"
        if holder.port in own:
            yield one.error("port", what, holder.remedy)
        elif holder.port == network.master_port and listening:
            remedy = "stop it, or write another master_port, if your program listens there"
            yield one.warning("port", what, remedy)


def devices(one: Patient) -> Iterator[Ailment]:
    """Tell of devices in an error state, and of nodes whose device is not there."""
    told = set()
    for entry in one.entries:
        chosen = choice(entry.node.device, one.facts.hardware)
        if chosen.problem and chosen.problem not in told:
            told.add(chosen.problem)
            yield one.error("device", chosen.problem, chosen.remedy)
    # An error says itself which devices are broken.
    for device in one.facts.hardware.devices if not told else ():
        if device.error:
            what = f"{device.device} {device.name!r} cannot be used: {device.error}"
            yield one.warning("device", what, "no rank is given it until it is repaired")
    hardware = one.facts.hardware
    for label in dict.fromkeys(device.device for device in hardware.devices):
        for what in troubles(hardware, label):
            yield one.warning("device", what, "ranks are given it all the same; have it looked at")
