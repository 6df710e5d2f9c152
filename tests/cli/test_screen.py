"""What is drawn on a terminal while a command works."""

import io
import os
import pty
import threading

import pytest
from rich.console import Console

from rlxdeploy.app.say import Doing
from rlxdeploy.cli.screen import Screen
from tests.cli.desk import until


@pytest.mark.parametrize(
    ("doing", "drawn"),
    [
        (
            Doing("scan", 120, 240, note="3 hosts found, about 12 s left"),
            "[##########..........] scan: 120/240, 3 hosts found, about 12 s left",
        ),
        (Doing("scan", 0, 240), "[....................] scan: 0/240"),
        (Doing("scan", 240, 240), "[####################] scan: 240/240"),
        (Doing("mDNS", 0, 1, note="listening on br0"), " mDNS: 0/1, listening on br0"),
        (Doing("survey", 1, 2, ("[fd00::5]",)), "survey: 1/2, waiting for [fd00::5]"),
    ],
    ids=["half", "nothing yet", "all", "one step", "an address in brackets"],
)
def test_a_terminal_shows_a_bar_and_what_is_known(doing: Doing, drawn: str) -> None:
    """Who was found and how long it takes, letter for letter."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    seen = bytearray()

    def shown() -> bool:
        try:
            seen.extend(os.read(ours, 4096))
        except BlockingIOError:
            return False
        return drawn.encode() in seen

    with os.fdopen(theirs, "w") as terminal, os.fdopen(ours, "rb"):
        screen = Screen()
        screen.notes = Console(file=terminal, width=100, color_system=None, _environ={})
        with screen.progress() as say:
            say(doing)
            assert until(shown)


def test_a_log_shows_that_a_long_wait_lives() -> None:
    """Where nothing new is heard, what is waited for is said again and again, and then no more."""
    screen, log = Screen(), io.StringIO()
    screen.notes = Console(file=log, width=100)
    line = "join: 0/2, waiting for rank 0 on a, rank 1 on b\n"
    with screen.progress(heartbeat=0.02) as say:
        say(Doing("join", 0, 2, ("rank 0 on a", "rank 1 on b")))
        assert until(lambda: log.getvalue().count(line) > 2)
    assert log.getvalue().replace(line, "") == ""
    assert not [one for one in threading.enumerate() if "_beat" in one.name]
