"""The journal on a disk that is full, and who failed in the last run, as it tells."""

from pathlib import Path

import pytest

from rlxdeploy.edge.journal import failed_last, open_journal
from rlxdeploy.edge.record import RecordError
from tests.edge.full import no_room_behind

BEGUN = ("begin", {"hosts": ["a", "b"]})
CASES = {
    "no run": ([], set()),
    "all went well": ([BEGUN, ("end", {"failed": []})], set()),
    "one failed": ([BEGUN, ("end", {"failed": ["b"]})], {"b"}),
    "not begun": ([("end", {"failed": ["c"]})], {"c"}),
    "killed at once": ([BEGUN], {"a", "b"}),
    "killed when one was done": ([BEGUN, ("host", {"host": "a", "did": "confirmed"})], {"b"}),
    "killed while one was staged": ([BEGUN, ("host", {"host": "a", "did": "staged"})], {"a", "b"}),
}


@pytest.mark.parametrize(("events", "failed"), CASES.values(), ids=CASES.keys())
def test_the_last_run_tells_who_failed(
    tmp_path: Path, events: list[tuple[str, dict[str, object]]], failed: set[str]
) -> None:
    """Its end says so; a run without one has failed where it was not finished."""
    inventory = tmp_path / "inventory.toml"
    earlier = open_journal(inventory, "t")
    if events:
        earlier.write("begin", hosts=["z"])
        earlier.write("end", failed=["z"])
    last = open_journal(inventory, "t")
    for event, fields in events:
        last.write(event, **fields)

    assert failed_last(inventory, "t") == failed


def test_a_line_that_was_cut_off_tells_nothing(tmp_path: Path) -> None:
    """The machine may have gone down in the middle of it."""
    inventory = tmp_path / "inventory.toml"
    journal = open_journal(inventory, "t")
    journal.write("begin", hosts=["a"])
    with journal.path.open("a") as file:
        file.write('{"at": 1, "run": "x", "ev')

    assert failed_last(inventory, "t") == {"a"}


def test_a_line_that_the_disk_cuts_off_is_an_error_and_swallows_none(tmp_path: Path) -> None:
    """Half of it may be there; what is written once there is room again stands by itself."""
    inventory = tmp_path / "inventory.toml"
    journal = open_journal(inventory, "t")
    journal.write("begin", hosts=["a"])
    for room in (0, 10):
        with no_room_behind(journal.path, room), pytest.raises(RecordError, match="too large"):
            journal.write("host", host="a", did="staged")
    journal.write("end", failed=["b"])

    assert failed_last(inventory, "t") == {"b"}
    assert journal.path.read_bytes().count(b"\n") == 3


def test_without_a_journal_nobody_has_failed(tmp_path: Path) -> None:
    """There was no run yet."""
    assert failed_last(tmp_path / "inventory.toml", "t") == frozenset()
