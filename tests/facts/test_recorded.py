"""Recorded answers of real tools; adding a case is adding a file and its sidecar."""

import re

import pytest

from rlxdeploy.facts import amd, hardware, network, nvidia, platform
from rlxdeploy.model.survey import Device, Interface
from rlxdeploy.model.targets import Enquiry
from tests.facts.recorded import FOLDER, Case, cases

# Where anybody can look it up: a page, an issue or pull request, a page of the manual.
_PUBLIC = re.compile(r"https://\S+\.\S+|[\w.-]+/[\w.-]+ #\d+|[\w.-]+\(\d\)")
_VERSION = re.compile(r"\d")
_SENTENCE = re.compile(r"[A-Z].{10,}\.")
# The exit status of a shell for a program that is not there: the one answer without a word.
_ABSENT = 127


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


@of("disk")
def test_free_space_is_read_as_recorded(case: Case) -> None:
    """The row of df counts, from the right, whatever language its heading is in."""
    folder = case.sidecar["folder"]
    read = hardware.parse(Enquiry("demo", folders=(folder,)), case.answers)

    assert read.disk_free == {folder: case.sidecar["disk_free"]}


@of("platform")
def test_rights_are_read_as_recorded(case: Case) -> None:
    """No tool's words are taken for consent, and none is needed to see a refusal."""
    read = platform.parse(Enquiry("demo", user="ghost"), case.answers)
    groups = case.sidecar.get("job_groups")

    assert (read.sudo, read.user_manager) == (case.sidecar["sudo"], case.sidecar["user_manager"])
    assert read.job_groups == (None if groups is None else tuple(groups))
    assert list(read.launches) == case.sidecar["launches"]


EVERY = [(tool.name, case) for tool in sorted(FOLDER.iterdir()) for case in cases(tool.name)]


@pytest.mark.parametrize(
    ("tool", "case"), EVERY, ids=[f"{tool}/{case.name}" for tool, case in EVERY]
)
def test_every_recorded_answer_says_where_it_comes_from(tool: str, case: Case) -> None:
    """A sidecar names the tool, its version, a public report, and in a sentence what it proves."""
    said = {key: case.sidecar[key] for key in ("tool", "version", "report", "claim")}

    assert said["tool"].strip(), tool
    assert _VERSION.search(said["version"])
    assert _PUBLIC.fullmatch(said["report"])
    assert _SENTENCE.fullmatch(said["claim"])
    assert all(answer.text or answer.status == _ABSENT for answer in case.answers.given.values())


def test_every_file_is_part_of_a_case() -> None:
    """No answer lies about that no sidecar reads."""
    recorded = {path.resolve() for path in FOLDER.glob("*/*.txt")}
    read = {
        (FOLDER / tool / answer["file"]).resolve()
        for tool, case in EVERY
        for answer in case.sidecar["answers"].values()
    }

    assert recorded == read
