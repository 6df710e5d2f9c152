"""A plan carried out on this machine by a real shell and real supervisors."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edge.deployment import Lab, alive, listing

SHELLS = {
    name: (path, *words)
    for name, words in {"dash": (), "bash": ("--posix",), "busybox": ("sh",)}.items()
    if (path := shutil.which(name))
}


@pytest.fixture(params=list(SHELLS.values()), ids=list(SHELLS))
def lab(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    (tmp_path / "runtime").mkdir()
    one = Lab(tmp_path, shell=request.param)
    yield one
    one.carry_out(one.destroy_plan((0, 1)))


def test_an_apply_starts_and_a_destroy_leaves_nothing(lab: Lab) -> None:
    """What was there before is there after, and no process is left."""
    before = listing(lab.folder)
    files = lab.files("r1", ranks=(0, 1))
    carried = lab.carry_out(lab.apply_plan(files, (0, 1)), files)
    records = [lab.record(0), lab.record(1)]

    assert carried.went
    assert not carried.outcomes.failed
    assert all(alive(record["pid"]) for record in records)
    assert (lab.home / "current").resolve() == lab.home / "releases" / "r1"
    assert (lab.home / "current/env/0.env").stat().st_mode & 0o777 == 0o600
    assert not (lab.home / "lock").exists()
    assert not lab.carry_out(lab.destroy_plan((0, 1))).outcomes.failed
    assert not any(alive(r[who]) for r in records for who in ("pid", "supervisor_pid"))
    assert listing(lab.folder).keys() == before.keys()
