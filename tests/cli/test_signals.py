"""Signals at every stage of an apply, once and twice; each stage is held up by a slow program."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cli.desk import PATIENCE_S, Desk, until
from tests.cli.slow import LEAVING, STAGES, Slow, slow_python
from tests.cli.test_interrupts import joining


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


@contextmanager
def held(desk: Desk, stage: str) -> Iterator[subprocess.Popen[str]]:
    """Give an apply that is in the stage, and that takes its time over ending it."""
    if stage == "preflight":
        mark = desk.folder / "begun"
        desk.pair(node=slow_python(desk, mark))
        process = desk.start("apply", "--yes", "--json")
        until(mark.exists, PATIENCE_S)
        yield process
    elif stage == "join":
        with Slow(desk, LEAVING):
            yield joining(desk, "--json")
    else:
        desk.pair()
        with Slow(desk, stage) as slow:
            yield slow.begun("--json")


INT, TERM = signal.SIGINT, signal.SIGTERM
TWICE = {
    "survey": (INT, INT),
    "preflight": (TERM, TERM),
    "stage": (INT, TERM),
    "go": (TERM, TERM),
    "join": (TERM, INT),
    "confirm": (INT, INT),
}
# No journal tells before a run or after its end; a preflight may end in good order first.
SILENT = ("survey", "preflight", "confirm")


@pytest.mark.parametrize(("stage", "first", "second"), [(one, *TWICE[one]) for one in TWICE])
def test_the_second_signal_ends_at_once(
    desk: Desk, stage: str, first: signal.Signals, second: signal.Signals
) -> None:
    """The host is not waited for, the journal of a run is written all the same, JSON is whole."""
    with held(desk, stage) as process:
        process.send_signal(first)
        heard = process.stderr
        assert heard is not None
        until(lambda: "once more" in heard.readline())
        process.send_signal(second)
        out, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 128 + second
    assert json.loads(out)["error"]["exit"] == 128 + second
    if stage not in SILENT:
        how = "terminated" if second == TERM else "interrupted"
        assert last_words(desk)["how"] == f"{how} twice"
    desk.pair()
    comes_through(desk)


@pytest.mark.parametrize("number", [INT, TERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_at_the_prompt_changes_nothing(
    desk: Desk, terminal: tuple[int, int], number: signal.Signals
) -> None:
    """Whoever is asked and presses Ctrl-C, or ends the command, has said no."""
    desk.pair()
    process = desk.asked(terminal, "apply")
    process.send_signal(number)

    assert process.wait(PATIENCE_S) == 128 + number, os.read(terminal[0], 4096)
    assert not (desk.data / "rlx").exists()


def writing(desk: Desk) -> subprocess.Popen[str]:
    """Return a command that writes a document longer than its pipe takes in."""
    desk.write("[job]\n" + "".join(f"unknown_key_{n} = 1\n" for n in range(1000)))
    return desk.start("validate", "--json")


def test_a_document_that_has_begun_is_the_only_one(desk: Desk) -> None:
    """A signal waits until it is whole, and writes no second one behind it."""
    process = writing(desk)
    assert process.stdout is not None
    assert process.stderr is not None
    begun = process.stdout.read(1)
    process.send_signal(TERM)
    document = json.loads(begun + process.stdout.read())

    assert process.wait(PATIENCE_S) == 128 + TERM
    assert len(document["files"][0]["findings"]) == 1000
    assert process.stderr.read().endswith("terminated\n")


def test_a_document_that_nobody_reads_keeps_no_process(desk: Desk) -> None:
    """The second signal ends it at once, in the middle of a write."""
    process = writing(desk)
    assert process.stdout is not None
    process.stdout.read(1)
    process.send_signal(INT)
    process.send_signal(TERM)

    assert process.wait(PATIENCE_S) == 128 + TERM
