"""SELinux: what an apply puts in place is labelled where the tool for it is there."""

from pathlib import Path

import pytest

from tests.edge.deployment import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    (tmp_path / "runtime").mkdir()
    return Lab(tmp_path)


def test_a_release_is_labelled_under_its_last_name(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`restorecon` sees what was put in place after its rename, for a rename keeps the label."""
    tool, log = tmp_path / "bin" / "restorecon", tmp_path / "log"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nfor path; do :; done; [ -e "$path" ] && echo "$*" >>{log}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    files = lab.files("r1")

    carried = lab.carry_out(lab.apply_plan(files), files)
    lab.carry_out(lab.destroy_plan())

    assert not carried.outcomes.failed
    labelled = [f"-RF {lab.tree.release('r1')}", f"-RF {lab.tree.deployment}"]
    assert log.read_text().splitlines() == labelled


def test_a_label_that_cannot_be_set_stops_before_anything_runs(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the tool complains of is the reason, and nothing is left of the release."""
    tool = tmp_path / "bin" / "restorecon"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho 'no context for it' >&2; exit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    files = lab.files("r1")

    carried = lab.carry_out(lab.apply_plan(files), files)

    assert not carried.went
    assert "no context for it" in str(carried.outcomes.failed[lab.name])
    assert not (lab.home / "releases").exists()
