"""A node gets the device it names, or the best its host has; nothing is passed over in silence."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from rlxdeploy.errors import CompileError
from rlxdeploy.model.survey import Device, Hardware
from rlxdeploy.resolve.devices import Choice, best_device, written_devices
from tests.resolve.lab import GIB, hardware, machine, settle

BIG = Device("cuda", "Big", 48 * GIB, ident="1")
SMALL = Device("cuda", "Small", 8 * GIB, ident="0")
VULKAN = Device("vulkan", "Vulkan GPU")
METAL = Device("metal", "M3", unified=True)
ANE = Device("ane", "Neural Engine", unified=True)
ROCM = Device("rocm", "AMD ROCm", 16 * GIB, unified=True, ident="0")
BROKEN = Device("cuda", "Big", available=False, error="Driver/library version mismatch")
ODD = Device("fpga", "Odd", 99 * GIB)

BEST = {
    "only a cpu": (hardware(), "cpu", "the host reports no other usable device"),
    "the one with most memory": (hardware(SMALL, BIG), "cuda", "the best reported: cuda 'Big'"),
    "0 counts as all of RAM": (hardware(BIG, METAL), "metal", "the best reported: metal 'M3'"),
    "equals keep the host's order": (
        hardware(ROCM, Device("cuda", "Other", 16 * GIB)),
        "rocm",
        "the best reported: rocm 'AMD ROCm'",
    ),
    "vulkan beside cuda": (
        hardware(SMALL, VULKAN),
        "cuda",
        "the best reported: cuda 'Small'; passed over vulkan 'Vulkan GPU' (cuda is there)",
    ),
    "vulkan alone": (hardware(VULKAN), "vulkan", "the best reported: vulkan 'Vulkan GPU'"),
    "ane is never taken unasked": (
        hardware(ANE),
        "cpu",
        (
            "the host reports no other usable device; passed over ane 'Neural Engine' (never taken"
            " unasked)"
        ),
    ),
    "an unknown label": (
        hardware(ODD, SMALL),
        "cuda",
        "the best reported: cuda 'Small'; passed over fpga 'Odd' (no known label)",
    ),
    "one card of two is broken": (
        hardware(BROKEN, SMALL),
        "cuda",
        "the best reported: cuda 'Small'; passed over cuda 'Big' (Driver/library version mismatch)",
    ),
}


@pytest.mark.parametrize(("seen", "label", "why"), BEST.values(), ids=BEST.keys())
def test_the_best_reported_device_is_taken_and_explained(
    seen: Hardware, label: str, why: str
) -> None:
    """The choice is upstream's, and all that was passed over is named with the reason."""
    choice = best_device(seen)

    assert (choice.devices, choice.why, choice.problem) == ((label,), why, "")


@pytest.mark.parametrize("others", [(), (VULKAN,)], ids=["alone", "with vulkan beside it"])
def test_a_broken_card_is_never_a_silent_cpu(others: tuple[Device, ...]) -> None:
    """An error state is a problem that says what to do, however else the card could be driven."""
    choice = best_device(hardware(BROKEN, *others))

    assert "Driver/library version mismatch" in choice.problem
    assert choice.remedy.startswith("reboot the host or reload the driver's module")


@pytest.mark.parametrize("choose", [best_device, partial(written_devices, ("cuda",))])
def test_a_card_that_its_driver_warns_of_is_taken_and_named(
    choose: Callable[[Hardware], Choice],
) -> None:
    """Once, however many of its slices there are; nothing else that is there is warned of."""
    slices = (replace(SMALL, ident=f"MIG-{number}", trouble="infoROM is bad") for number in (1, 2))
    choice = choose(hardware(*slices, replace(ROCM, mem_bytes=1, trouble="hot")))

    assert (choice.devices, choice.problem) == (("cuda",), "")
    assert choice.warning == "cuda 'Small' may fail: infoROM is bad"


def seats(text: str, *devices: Device) -> list[tuple[tuple[str, ...], str | None]]:
    """Return what each rank of a one-machine inventory gets."""
    return [
        (seat.devices, seat.visible) for seat in settle(text, machine("local", "", *devices)).seats
    ]


ALLOTTED = {
    "one slot sees one device, the biggest": (
        "[[node]]\n",
        (SMALL, BIG),
        [(("cuda",), "1")],
    ),
    "two slots see both, in slot order": (
        "[[node]]\nslots = 2\n",
        (SMALL, BIG),
        [(("cuda",), "1,0")] * 2,
    ),
    "device_env one pins each": (
        '[job]\ndevice_env = "one"\n[[node]]\nslots = 2\n',
        (SMALL, BIG),
        [(("cuda",), "1"), (("cuda",), "0")],
    ),
    "two nodes on one host share its devices out": (
        "[[node]]\n[[node]]\n",
        (SMALL, BIG),
        [(("cuda",), "1,0")] * 2,
    ),
    "each rank sees one MIG slice": (
        "[[node]]\nslots = 2\n",
        (Device("cuda", "H", GIB, ident="MIG-a"), Device("cuda", "H", GIB, ident="MIG-b")),
        [(("cuda",), "MIG-a"), (("cuda",), "MIG-b")],
    ),
    "a cpu takes any number of ranks": (
        '[[node]]\ndevice = "cpu"\nslots = 3\n',
        (BIG,),
        [(("cpu",), None)] * 3,
    ),
    "a list is kept, aliases folded": (
        '[[node]]\ndevice = "nvidia, cpu"\n',
        (BIG,),
        [(("cuda", "cpu"), "1")],
    ),
    "what the survey cannot see is the person's word": (
        '[[node]]\ndevice = "tpu"\nslots = 2\n',
        (),
        [(("tpu",), None)] * 2,
    ),
}


@pytest.mark.parametrize(("text", "devices", "given"), ALLOTTED.values(), ids=ALLOTTED.keys())
def test_each_rank_gets_a_device_of_its_own(
    text: str, devices: tuple[Device, ...], given: list[tuple[tuple[str, ...], str | None]]
) -> None:
    """Index LOCAL_RANK of what a rank may see is its device."""
    assert seats(text, *devices) == given


SHORT = {
    "more slots than devices": (
        "[[node]]\nslots = 3\n",
        (SMALL, BIG),
        (
            "inventory.toml:2:1: node[0].slots: 3 ranks on local want a cuda device, it has 2;"
            ' write fewer slots, or device = "cpu"'
        ),
    ),
    "a device that is not there": (
        '[[node]]\ndevice = "cuda"\n',
        (),
        (
            "inventory.toml:2:1: node[0].device: local: the host has no usable cuda device (it"
            ' reports cpu); repair it, or write device = "cpu"'
        ),
    ),
    "a device in an error state": (
        '[[node]]\ndevice = "cuda"\n',
        (BROKEN,),
        "the host has no usable cuda device (cuda 'Big': Driver/library version mismatch)",
    ),
}


@pytest.mark.parametrize(("text", "devices", "message"), SHORT.values(), ids=SHORT.keys())
def test_a_device_that_is_short_is_an_error(
    text: str, devices: tuple[Device, ...], message: str
) -> None:
    """No two ranks are given one device, and none is given another kind than was written."""
    with pytest.raises(CompileError) as caught:
        seats(text, *devices)

    assert message in str(caught.value)


def test_a_choice_without_a_problem_says_so_by_its_emptiness() -> None:
    """A plain choice has neither problem nor warning."""
    assert best_device(hardware(BIG)) == Choice(("cuda",), "the best reported: cuda 'Big'")
