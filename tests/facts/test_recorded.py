"""Recorded answers of real tools; adding a case is adding a file and its sidecar."""

from pathlib import Path

import pytest

from rlxdeploy.facts import amd, hardware, network, nvidia
from rlxdeploy.model.survey import Device, Interface
from rlxdeploy.model.targets import Enquiry
from tests.facts.recorded import Case, cases


def of(tool: str) -> pytest.MarkDecorator:
    found = cases(tool)
    assert found
    return pytest.mark.parametrize("case", found, ids=[case.name for case in found])


@of("nvidia")
def test_nvidia_smi_is_read_as_recorded(case: Case) -> None:
    """Each recorded answer of nvidia-smi gives the devices that its sidecar claims."""
    expected = tuple(Device(**device) for device in case.sidecar["device"])

    assert nvidia.parse(case.answers, case.sidecar["ram_total"]) == expected


@of("amd")
def test_amd_and_vulkan_are_read_as_recorded(case: Case) -> None:
    """Each recorded answer of rocminfo, vulkaninfo and sysfs gives the claimed devices."""
    expected = tuple(Device(**device) for device in case.sidecar["device"])

    assert amd.parse(case.answers) == expected


@of("hardware")
def test_memory_and_cores_are_read_as_recorded(case: Case) -> None:
    """Each recorded /proc, control group or sysctl gives the claimed sizes, the processor first."""
    read = hardware.parse(Enquiry("demo"), case.answers)
    wanted = case.sidecar

    assert (read.cpu, read.cores) == (wanted["cpu"], wanted["cores"])
    assert (read.ram_total, read.ram_avail) == (wanted["ram_total"], wanted["ram_avail"])
    assert [device.device for device in read.devices] == wanted.get("devices", ["cpu"])


@of("network")
def test_interfaces_are_read_as_recorded(case: Case) -> None:
    """Each recorded answer about the network gives the claimed interfaces and default routes."""
    read = network.parse(case.answers)
    expected = tuple(
        Interface(**(interface | {"addresses": tuple(interface.get("addresses", ()))}))
        for interface in case.sidecar["interface"]
    )

    assert read.interfaces == expected
    assert list(read.default_routes) == case.sidecar["default_routes"]


def test_every_recorded_answer_says_where_it_comes_from() -> None:
    """A sidecar names the tool, its version, a public report and what it proves."""
    folder = Path(__file__).with_name("cases")
    for tool in folder.iterdir():
        for case in cases(tool.name):
            lacking = {"tool", "version", "report", "claim"} - case.sidecar.keys()
            assert not lacking, f"{tool.name}/{case.name} lacks {lacking}"
