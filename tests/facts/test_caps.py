"""Capabilities as upstream's workers print them, in both of their forms."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.facts.caps import DeviceInfo, NodeCaps, caps, read_caps, read_workers
from rlxdeploy.model.host import Host
from rlxdeploy.model.survey import Device, Hardware, HostFacts, JobSeen, Network, Platform

BYTES = st.integers(0, 2**64 - 1)
RATES = st.floats(0, 1e9, allow_nan=False)
DEVICES = st.builds(
    DeviceInfo, device=st.sampled_from(["cpu", "cuda"]), mem_bytes=BYTES, gflops=RATES
)
CAPS = st.builds(
    NodeCaps,
    cores=st.integers(0, 4096),
    ram_total=BYTES,
    ram_avail=BYTES,
    disk_free=BYTES,
    devices=st.lists(DEVICES, max_size=4).map(tuple),
    gflops=RATES,
    io_mbps=RATES,
)
OLD = (
    '{"addr":"10.0.0.5:9100","os":"linux","cores":8,"ram_total":64,"ram_avail":32,"disk_free":9,'
    '"devices":[{"device":"cpu","name":"CPU","mem_bytes":0,"unified":true},'
    '{"device":"cuda","name":"Tesla T4","mem_bytes":16,"unified":false}],"gflops":3,"io_mbps":0}'
)


@given(CAPS)
def test_a_line_reads_back(said: NodeCaps) -> None:
    """What we print is one line, and reads back as it was."""
    assert "\n" not in said.line()
    assert read_caps(f"noise\n{said.line()}\n") == said


def test_the_older_form_is_accepted() -> None:
    """Devices without gflops and available, as before 0.2.16, are usable and unmeasured."""
    said = read_caps(OLD)

    assert [(info.gflops, info.available) for info in said.devices] == [(0.0, True)] * 2
    assert said.gflops == 3.0
    assert said.hardware("/ckpt") == Hardware(
        cpu="CPU",
        cores=8,
        ram_total=64,
        ram_avail=32,
        disk_free={"/ckpt": 9},
        devices=(Device("cpu", "CPU", unified=True), Device("cuda", "Tesla T4", 16)),
        gflops=3.0,
    )


def test_fields_of_a_newer_worker_are_passed_over() -> None:
    """An unknown field is a newer version's and no error."""
    assert read_caps(json.dumps(json.loads(OLD) | {"npu": 1})) == read_caps(OLD)


def test_json_of_a_login_profile_is_not_taken_for_capabilities() -> None:
    """The first line that is a whole object counts, not the first that begins with a brace."""
    assert read_caps('{"devices": []}\n{broken\n' + OLD) == read_caps(OLD)


@pytest.mark.parametrize(
    ("stdout", "why"),
    [
        ("", "no line begins with {"),
        ("usage: worker\n", "no line begins with {"),
        ('{"devices": []}', "addr: Field required"),
        (OLD.replace('"cores":8', '"cores":-1'), "cores: "),
        (OLD.replace('"mem_bytes":16', '"mem_bytes":-1'), "devices.1.mem_bytes: "),
    ],
    ids=["empty", "text", "lacking", "negative", "device"],
)
def test_an_answer_without_capabilities_says_what_it_lacks(stdout: str, why: str) -> None:
    """All fields but the two new ones are required, and sizes are not negative."""
    with pytest.raises(ValueError, match="no capabilities") as caught:
        read_caps(stdout)
    assert why in str(caught.value)


def test_our_facts_are_put_in_upstreams_form() -> None:
    """Names and order are upstream's; what we add to a device stays out."""
    broken = Device("cuda", "NVIDIA GPU", available=False, error="mismatch", ident="0")
    hardware = Hardware(
        "EPYC", 64, 256, 128, {"/ckpt": 9}, (Device("cpu", "EPYC", unified=True), broken)
    )
    words = dict.fromkeys(Platform.__dataclass_fields__, "")
    nothing = ("os", "uid", "clock", "programs", "searched", "groups", "launches", "sudo")
    kept = {key: word for key, word in words.items() if key not in {*nothing, "job_groups"}}
    platform = Platform(**kept, os="linux", uid=0, clock=0.0)  # type: ignore[arg-type]  # all texts
    facts = HostFacts(Host("a", "a"), hardware, Network(()), platform, JobSeen())

    assert caps(facts, "10.0.0.5:9100", "/ckpt").line() == (
        '{"addr":"10.0.0.5:9100","os":"linux","cores":64,"ram_total":256,"ram_avail":128,'
        '"disk_free":9,"devices":[{"device":"cpu","name":"EPYC","mem_bytes":0,"unified":true,'
        '"gflops":0.0,"available":true},{"device":"cuda","name":"NVIDIA GPU","mem_bytes":0,'
        '"unified":false,"gflops":0.0,"available":false}],"gflops":0.0,"io_mbps":0.0}'
    )


NEW = OLD.replace("10.0.0.5", "10.0.0.6").replace(
    '"unified":false}', '"unified":false,"gflops":7.5,"available":false}'
)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (OLD, ["10.0.0.5:9100"]),
        (f"{OLD}\n{NEW}\n", ["10.0.0.5:9100", "10.0.0.6:9100"]),
        (f'Welcome\n{{"devices": []}}\n{OLD}\n\n', ["10.0.0.5:9100"]),
        (f"[{OLD}, {NEW}]", ["10.0.0.5:9100", "10.0.0.6:9100"]),
        (f'{{"format_version": 1, "hosts": {{"a": {OLD}, "b": {NEW}}}}}', ["a", "b"]),
    ],
    ids=["one", "a line each", "with a login's noise", "a list", "probe --json"],
)
def test_a_file_holds_the_capabilities_of_many(text: str, keys: list[str]) -> None:
    """Workers' lines, a list of them, or what `probe --json` printed, by name or else address."""
    found = read_workers(text)

    assert found is not None
    assert list(found) == keys
    assert found[keys[0]] == read_caps(OLD)
    assert all(one == read_caps(NEW) for one in [*found.values()][1:])


@pytest.mark.parametrize(
    "text",
    ["", "text", "[]", "{}", "7", '{"format_version": 1, "hosts": {"a": {"host": {}}}}'],
)
def test_what_holds_none_is_something_else(text: str) -> None:
    """A saved survey, say; whoever reads that has the better message."""
    assert read_workers(text) is None


def test_capabilities_in_a_file_are_whole_or_named() -> None:
    """Which one lacks what is said."""
    broken = OLD.replace('"cores":8,', "")

    with pytest.raises(ValueError, match="capabilities number 2: cores: Field required"):
        read_workers(f"[{OLD}, {broken}]")
    with pytest.raises(ValueError, match="b: cores: Field required"):
        read_workers(f'{{"hosts": {{"a": {OLD}, "b": {broken}}}}}')
