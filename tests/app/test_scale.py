"""Two thousand hosts from a recorded survey: seconds, a bounded memory, and a word about meshes."""

import re
from pathlib import Path

import pytest

from bench.compile import Sample, inventory, measure, recorded

HOSTS = 2000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with the survey of two thousand hosts."""
    folder = tmp_path_factory.mktemp("scale")
    (folder / "survey.json").write_text(recorded(HOSTS))
    return folder


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
