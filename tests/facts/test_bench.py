"""What a host's speed is measured with, run here by a real shell and a real Python."""

import ast
import ctypes
import mmap
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rlxdeploy.facts import bench
from rlxdeploy.facts.bench import Speeds, measured
from rlxdeploy.facts.question import Answer, Answers
from rlxdeploy.model.survey import Device, Hardware
from rlxdeploy.model.targets import Enquiry

MIB = 1 << 20
HARDWARE = Hardware(
    cpu="CPU",
    cores=8,
    ram_total=1,
    ram_avail=1,
    disk_free={},
    devices=(Device("cpu", "CPU"), Device("cuda", "A", ident="0"), Device("cuda", "B", ident="1")),
)


def answered(text: str) -> Answers:
    return Answers({bench.NAME: Answer(text)})


def measure(folder: Path, python: str = sys.executable) -> Speeds:
    """Ask this machine."""
    (question,) = bench.questions(
        Enquiry("demo", folders=(str(folder),), python=python, bench=True)
    )
    script = f"asked_path=$PATH\n{question.script}"
    ran = subprocess.run(
        ("/bin/sh", "-c", script), capture_output=True, text=True, timeout=60, check=False
    )
    return bench.parse(answered(ran.stdout))


def test_nothing_is_measured_unasked() -> None:
    """A survey without --bench costs the hosts nothing."""
    assert bench.questions(Enquiry("demo", folders=("/",))) == ()


def test_an_old_python_can_measure(tmp_path: Path) -> None:
    """The grammar is that of Python 3.6, as the oldest hosts have it."""
    (question,) = bench.questions(Enquiry("demo", folders=(str(tmp_path),), bench=True))
    words = shlex.split(question.script.replace("\\\n", ""))

    ast.parse(words[words.index("-c") + 1], feature_version=(3, 6))


def test_processor_and_disk_are_measured(tmp_path: Path) -> None:
    """The processor multiplies, the disk writes, and no trace of it stays."""
    speeds = measure(tmp_path)

    assert speeds.gflops["cpu", ""] > 0.1
    assert speeds.io_mbps > 0.1
    assert list(tmp_path.iterdir()) == []


# What a Mac's torch is asked for, with numpy to do the work: there is no such card here.
TORCH = """\
import numpy, types
version = types.SimpleNamespace(hip=None)
cuda = types.SimpleNamespace(device_count=lambda: 0)
backends = types.SimpleNamespace(mps=types.SimpleNamespace(is_available=lambda: True))
done = []
mps = types.SimpleNamespace(synchronize=lambda: done.append(1))
def ones(rows, columns, device):
    assert device == "mps"
    return numpy.ones((rows, columns), "f4")
def mm(row, square):
    assert len(done) >= mm.calls, "nobody waited for the last product"
    mm.calls += 1
    return row @ square
mm.calls = 0
"""


def test_an_apple_card_is_measured_as_metal(tmp_path: Path) -> None:
    """Where torch has Metal, each product is waited for and the device named as the survey does."""
    (tmp_path / "torch.py").write_text(TORCH)
    python = tmp_path / "python"
    own = f"PYTHONPATH={tmp_path} exec {sys.executable}"
    python.write_text(f'#!/bin/sh\n[ "$1" = -E ] && shift\n{own} "$@"\n')
    python.chmod(0o755)

    speeds = measure(tmp_path, str(python))

    assert "cards" not in speeds.failed
    assert speeds.gflops["metal", ""] > 0.1


def test_the_largest_file_is_read_and_left_as_it_is(tmp_path: Path) -> None:
    """A checkpoint of more than 8 MiB serves as what is read, where its pages are cold."""
    file = tmp_path / "model.gguf"
    file.write_bytes(bytes(9 * MIB))
    before = file.stat().st_mtime_ns

    assert measure(tmp_path).io_mbps > 0.1
    assert [path.name for path in tmp_path.iterdir()] == ["model.gguf"]
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (9 * MIB, before)


@pytest.mark.parametrize("cold", [True, False], ids=["cold", "in the page cache"])
def test_only_cold_pages_are_read(tmp_path: Path, *, cold: bool) -> None:
    """A file that no cache holds is read; one that a cache holds is not.

    In its place a probe file is written, which the folder's time of change gives away.
    """
    file = tmp_path / "model.gguf"
    file.write_bytes(os.urandom(9 * MIB))
    evict(file)
    if resident(file) > 0.1:
        pytest.skip(f"the filesystem of {tmp_path} keeps everything in memory")
    if not cold:
        file.read_bytes()
        assert resident(file) > 0.9
    before = tmp_path.stat().st_mtime_ns

    assert measure(tmp_path).io_mbps > 0.1

    assert resident(file) > 0.9
    assert (tmp_path.stat().st_mtime_ns == before) == cold


def evict(path: Path) -> None:
    """Have the kernel drop what it holds of a file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def resident(path: Path) -> float:
    """Return which part of a file's pages the kernel holds."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        pages = (ctypes.c_ubyte * -(-len(mapped) // mmap.PAGESIZE))()
        start = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        known = ctypes.CDLL(None).mincore(
            ctypes.c_void_p(start), ctypes.c_size_t(len(mapped)), pages
        )
    assert known == 0
    return sum(page & 1 for page in pages) / len(pages)


def test_a_python_that_is_not_there_measures_nothing(tmp_path: Path) -> None:
    """Then the numbers are 0: not measured."""
    assert measure(tmp_path, "no-such-python") == Speeds({}, 0.0)


def test_a_folder_that_is_not_there_leaves_the_rest(tmp_path: Path) -> None:
    """What fails is left out and says why, and the processor counts all the same."""
    speeds = measure(tmp_path / "absent")

    assert speeds.io_mbps == 0
    assert "No such file or directory" in speeds.failed["disk"]
    assert speeds.gflops["cpu", ""] > 0


@pytest.mark.parametrize(
    ("text", "speeds"),
    [
        ("", Speeds({}, 0.0)),
        ("gflops|cpu||12.5\nio|800.0\n", Speeds({("cpu", ""): 12.5}, 800.0)),
        ("gflops|cuda|1|9e3\n", Speeds({("cuda", "1"): 9000.0}, 0.0)),
        ("failed|cards|No module named 'torch'\n", Speeds({}, 0.0, {"cards": "no torch"})),
        ("failed|disk|[Errno 5] a|b\n", Speeds({}, 0.0, {"disk": "[Errno 5] a|b"})),
        ("gflops|cpu||much\nio|-3\ngflops|7\n", Speeds({("cpu", ""): 0.0}, 0.0)),
    ],
    ids=["silence", "both", "a card", "no library", "another reason", "nonsense"],
)
def test_what_was_not_measured_is_zero(text: str, speeds: Speeds) -> None:
    """Lines are read one by one; what is no number does not count."""
    assert bench.parse(answered(text)) == speeds


def test_speeds_go_to_their_devices_and_the_fastest_is_the_node_s() -> None:
    """By label and ident; a device that nobody measured keeps what it had."""
    speeds = Speeds({("cpu", ""): 50.0, ("cuda", "1"): 9000.0}, 700.0)

    found = measured(HARDWARE, speeds)

    assert [one.gflops for one in found.devices] == [50.0, 0.0, 9000.0]
    assert (found.gflops, found.io_mbps) == (9000.0, 700.0)
    assert measured(replace(HARDWARE, gflops=7.0), Speeds({}, 0.0)).gflops == 7.0
