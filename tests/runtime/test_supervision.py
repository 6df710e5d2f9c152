"""The supervisor's parts that need no second process."""

from pathlib import Path

from rlxdeploy.runtime.supervision.log import BoundedLog
from rlxdeploy.runtime.supervision.policy import StartLimit


def test_a_log_keeps_the_last_two_files(tmp_path: Path) -> None:
    """At its limit the file becomes `.1`; together they hold the latest lines, whole."""
    path = tmp_path / "0.log"
    log = BoundedLog(path, limit=100)
    for number in range(50):
        log.write(f"line {number:03}\n".encode())

    kept = (tmp_path / "0.log.1").read_text() + path.read_text()
    assert kept.splitlines() == [f"line {n:03}" for n in range(50)][-len(kept.splitlines()) :]
    assert path.stat().st_size <= 100
    assert [one.name for one in sorted(tmp_path.iterdir())] == ["0.log", "0.log.1"]


def test_a_log_is_private_and_grows_over_restarts(tmp_path: Path) -> None:
    """A second opening appends; nobody else reads what a job printed."""
    path = tmp_path / "0.log"
    BoundedLog(path).write(b"one\n")
    BoundedLog(path).write(b"two\n")

    assert path.read_text() == "one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_our_own_word_stands_on_a_line_of_its_own(tmp_path: Path) -> None:
    """A process that dies in mid-line does not hide why."""
    log = BoundedLog(tmp_path / "0.log")
    log.write(b"half a li")
    log.say("ended: exit 3")

    lines = (tmp_path / "0.log").read_text().splitlines()
    assert lines[0] == "half a li"
    assert lines[1].endswith(": ended: exit 3")


def test_the_start_limit_forgets_what_is_long_ago() -> None:
    """Twenty starts in sixty seconds and no more; a slow loop goes on for ever."""
    limit = StartLimit(2, 60.0)

    assert [limit.admits(now) for now in (0.0, 1.0, 2.0, 59.9, 60.0, 60.5, 61.0)] == [
        True,
        True,
        False,
        False,
        True,
        False,
        True,
    ]
