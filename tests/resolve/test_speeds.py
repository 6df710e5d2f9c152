"""Measured speeds that are kept: found again by machine and device, and by nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from rlxdeploy.edge.record import RecordError
from rlxdeploy.edge.speeds import read_speeds, write_speeds
from rlxdeploy.model.speeds import Speeds
from rlxdeploy.model.survey import Device, HostFacts
from rlxdeploy.resolve.speeds import renewed, speeds_of, with_speeds
from tests.resolve.lab import machine, survey

CARD = Device("cuda", "Tesla T4", 16 << 30, ident="0")


def measured(facts: HostFacts, speed: float, at: float = 1.7e9) -> HostFacts:
    """Return *facts* with the processor measured as *speed*, each card ten times as fast."""
    devices = tuple(
        replace(one, gflops=speed if one.device == "cpu" else 10 * speed)
        for one in facts.hardware.devices
    )
    fastest = max(one.gflops for one in devices)
    hardware = replace(facts.hardware, devices=devices, gflops=fastest, io_mbps=7.0, measured_at=at)
    return replace(facts, hardware=hardware)


def given(kept: Speeds, facts: HostFacts) -> tuple[float, float]:
    """Return the speed of the node and of its last device once it has what is kept of it."""
    (seen,) = with_speeds(survey(facts), kept).hosts.values()
    return seen.hardware.gflops, seen.hardware.devices[-1].gflops


GPU = machine("a", "10.0.0.1/24", CARD)
KEPT = renewed(Speeds(), speeds_of(survey(measured(GPU, 5.0), machine("b", "10.0.0.2/24"))))
OTHER = replace(machine("c", "10.0.0.3/24", CARD), host=GPU.host)

CASES = {
    "as it was": (GPU, (50.0, 50.0)),
    "started anew": (replace(GPU, platform=replace(GPU.platform, boot_id="later")), (50.0, 50.0)),
    "under another name": (replace(GPU, host=replace(GPU.host, name="10.0.0.1")), (50.0, 50.0)),
    "another card": (machine("a", "10.0.0.1/24", replace(CARD, name="L4")), (5.0, 0.0)),
    "another machine of that name": (OTHER, (0.0, 0.0)),
    "a copy of its system": (machine("d", "10.0.0.4/24", machine_id="machine-a"), (0.0, 0.0)),
    "measured itself": (measured(GPU, 8.0), (80.0, 80.0)),
}


@pytest.mark.parametrize(("facts", "speeds"), CASES.values(), ids=CASES.keys())
def test_a_machine_has_the_speeds_that_were_measured_of_it(
    facts: HostFacts, speeds: tuple[float, float]
) -> None:
    """By machine-id and MAC, and by the name of the device; what a survey has itself goes first."""
    assert given(KEPT, facts) == speeds


def test_a_new_measurement_takes_the_place_of_the_last() -> None:
    """Of the same machine alone; who was not measured this time keeps what he had."""
    other = machine("b", "10.0.0.2/24")
    both = renewed(KEPT, speeds_of(survey(measured(other, 3.0), GPU)))
    again = renewed(both, speeds_of(survey(measured(GPU, 6.0))))

    assert (given(again, GPU)[0], given(again, other)[0]) == (60.0, 3.0)
    assert len(again.machines) == 2


def test_what_is_kept_reads_back(tmp_path: Path) -> None:
    """Beside the inventory, for whatever job; what is broken is named with the way out."""
    inventory = tmp_path / "lab.toml"
    assert read_speeds(inventory) == Speeds()

    write_speeds(inventory, KEPT)
    assert read_speeds(inventory) == KEPT

    (tmp_path / ".rlxdeploy/machines.speeds").write_text("{")
    with pytest.raises(RecordError, match=r"no speeds of ours .*; remove it, and measure again"):
        read_speeds(inventory)
