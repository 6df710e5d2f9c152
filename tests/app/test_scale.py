"""Two thousand hosts from a recorded survey: seconds, a bounded memory, and a word about meshes."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pytest

from bench.compile import Sample, inventory, measure, recorded
from rlxdeploy.app.compile import Request
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.plan import plan_job
from rlxdeploy.app.say import nobody
from rlxdeploy.plan.text import plan_lines

HOSTS = 2000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with the survey of two thousand hosts."""
    folder = tmp_path_factory.mktemp("scale")
    (folder / "survey.json").write_text(recorded(HOSTS))
    return folder


@pytest.mark.quiet
@pytest.mark.parametrize("topology", ["mesh", "star"])
def test_a_plan_for_two_thousand_hosts_takes_seconds(folder: Path, topology: str) -> None:
    """As its own process, with Python's start, under ten seconds and 500 MB."""
    (folder / "inventory.toml").write_text(inventory(HOSTS, topology))

    sample = measure(folder)

    assert isinstance(sample, Sample)
    assert sample.seconds < 10
    assert sample.megabytes < 500
    warned = re.search(r"2,000 ranks in a mesh are 1,999,000 connections.*star", sample.said)
    assert bool(warned) == (topology == "mesh")


@dataclass
class Effort:
    """The calls of Python and C functions that one plan takes, and the bytes of its output."""

    calls: int = 0
    written: int = 0

    def count(self, _frame: FrameType, event: str, _argument: object) -> None:
        """Take note of what the interpreter does, as `sys.setprofile` tells it."""
        self.calls += event in ("call", "c_call")


def effort(folder: Path, hosts: int, topology: str) -> Effort:
    """Plan for so many hosts, as the command does, and print the plan."""
    (folder / "survey.json").write_text(recorded(hosts))
    (folder / "inventory.toml").write_text(inventory(hosts, topology))
    found = Effort()
    request = Request(folder / "inventory.toml", folder / "survey.json")
    with Lab() as lab:
        # The first plan of a process imports what the others find.
        plan_job(request, lab, nobody)
        sys.setprofile(found.count)
        try:
            planned = plan_job(request, lab, nobody)
            lines = [line.text for line in plan_lines(planned.plan, ())]
        finally:
            sys.setprofile(None)
    files = [file for host in planned.files.hosts.values() for file in host.released]
    found.written = sum(len(file.content) for file in files) + sum(map(len, lines))
    return found


@pytest.mark.parametrize("topology", ["mesh", "star"])
def test_the_work_grows_no_faster_than_the_output(tmp_path: Path, topology: str) -> None:
    """Twice the hosts are at most twice the calls in a star, and in a mesh less than the files."""
    few, many = (effort(tmp_path, hosts, topology) for hosts in (150, 300))

    work, output = many.calls / few.calls, many.written / few.written
    assert work < 1.1 * output
    assert work < 2.2
    assert output > (2.5 if topology == "mesh" else 1.8)
