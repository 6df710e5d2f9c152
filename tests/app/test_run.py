"""What a run writes down before and after hosts are told to go, and where it cannot."""

import json
import os
import shutil
from pathlib import Path

import pytest

from rlxdeploy.app.run import Run
from rlxdeploy.edge.record import RecordError
from rlxdeploy.model.step import PruneReleases
from tests.edge.deployment import Lab
from tests.edge.full import no_room_behind


@pytest.fixture
def run(tmp_path: Path) -> Run:
    plan = Lab(tmp_path).plan((), (PruneReleases(3),))
    return Run.begin("apply", plan, tmp_path / "inventory.toml", "ann")


def lines(run: Run) -> list[str]:
    told = [json.loads(line) for line in run.journal.path.read_text(encoding="utf-8").splitlines()]
    return [one.get("did") or one["event"] for one in told]


def test_the_disk_holds_what_was_written_when_hosts_go_and_at_the_end(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut of this machine leaves what is to be done, and what has come of it."""
    synced: list[tuple[int, list[str]]] = []
    real = os.fsync

    def fsync(file: int) -> None:
        real(file)
        synced.append((os.fstat(file).st_ino, lines(run)))

    monkeypatch.setattr(os, "fsync", fsync)
    run.heard("local", "staged")
    with run.going():
        run.heard("local", "changed")
    run.end("done")

    journal, folder = run.journal.path.stat().st_ino, run.journal.path.parent.stat().st_ino
    held = ["begin", "staged"], ["begin", "staged", "changed", "end"]
    assert synced == [(file, one) for one in held for file in (journal, folder)]


def test_hosts_do_not_go_where_that_cannot_be_held(run: Run) -> None:
    """Nothing has been changed then."""
    shutil.rmtree(run.journal.path.parent)
    with pytest.raises(RecordError, match="No such file"), run.going():
        pytest.fail("hosts were told to go")


def test_a_full_disk_stops_a_run_before_its_hosts_go_and_is_told_after(run: Run) -> None:
    """Hosts that are on their way are not left to themselves; the end says what is lacking."""
    with no_room_behind(run.journal.path), pytest.raises(RecordError, match="too large"):
        run.heard("local", "staged")
    with run.going(), no_room_behind(run.journal.path):
        run.heard("local", "told to go")
        run.stage("join")
        run.heard("local", "changed")
    with pytest.raises(RecordError, match="the hosts have gone on without it"):
        run.end("done")

    assert run.is_settled("local")
    assert lines(run) == ["begin", "end"]
