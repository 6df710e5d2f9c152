"""Signals at every stage of an apply, once and twice; each stage is held up by a slow program."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.desk import COMMAND, PATIENCE_S, Desk, until
from tests.cli.slow import STAGES, Slow


def last_words(desk: Desk) -> dict[str, Any]:
    path = desk.lab / ".rlxdeploy" / "demo.journal"
    last: dict[str, Any] = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    return last


def comes_through(desk: Desk) -> None:
    """The lock is free once the host has ended by itself, and the next apply forms the group."""
    until(lambda: not (desk.data / "rlx/demo/lock").exists(), PATIENCE_S)
    desk.good("apply", "--yes")
    assert desk.status()["joined"] == 2
    assert not (desk.data / "rlx/demo/.revert").exists()
    desk.good("destroy", "--yes")
    # Questions that a host was asked end by themselves, soon.
    until(lambda: not desk.left(), PATIENCE_S)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_one_signal_ends_in_good_order(desk: Desk, stage: str, number: signal.Signals) -> None:
    """The table, the command to go on and the exit code; before GO nothing is left."""
    desk.pair()
    with Slow(desk, stage) as slow:
        process = slow.begun()
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 128 + number, err
    assert "Traceback" not in err
    assert "to go on: rlxdeploy apply inventory.toml" in err
    if stage == "survey":
        assert "Nothing was changed on any host." in err
    else:
        assert "host" in err
        assert last_words(desk)["how"] == (
            "interrupted" if number == signal.SIGINT else "terminated"
        )
    if stage in ("survey", "stage"):
        assert not (desk.data / "rlx").exists()
    comes_through(desk)


@pytest.mark.parametrize("stage", STAGES)
def test_the_second_signal_ends_at_once(desk: Desk, stage: str) -> None:
    """The host is not waited for, the journal of a run is written all the same, JSON is whole."""
    desk.pair()
    with Slow(desk, stage) as slow:
        process = slow.begun("--json")
        process.send_signal(signal.SIGINT)
        heard = process.stderr
        assert heard is not None
        until(lambda: "once more" in heard.readline())
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130
    assert json.loads(out)["error"]["exit"] == 130
    if stage not in ("survey", "confirm"):
        assert last_words(desk)["how"] == "interrupted twice"
    comes_through(desk)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal: a person's and a program's."""
    ends = pty.openpty()
    yield ends
    for end in ends:
        os.close(end)


def test_a_signal_at_the_prompt_changes_nothing(desk: Desk, terminal: tuple[int, int]) -> None:
    """Whoever is asked and presses Ctrl-C has said no."""
    person, program = terminal
    desk.pair()
    process = subprocess.Popen(
        [COMMAND, "apply"],
        cwd=desk.lab,
        env=desk.environ,
        stdin=program,
        stderr=program,
        stdout=subprocess.DEVNULL,
    )
    said = b""
    while b"Carry this out?" not in said:
        said += os.read(person, 4096)
    process.send_signal(signal.SIGINT)

    assert process.wait(PATIENCE_S) == 130, os.read(person, 4096)
    assert not (desk.data / "rlx").exists()
