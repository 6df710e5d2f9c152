"""The two streams: results on stdout, words for people on stderr when stdout carries JSON.

Progress is one live line on a terminal, and otherwise a line when a stage begins and a heartbeat
every `HEARTBEAT_S`, so that a log of a long run shows that it lives.
"""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from threading import Event, Lock, Thread
from typing import ClassVar, Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from rlxdeploy.app.say import Doing, Say
from rlxdeploy.cli.document import write_document
from rlxdeploy.cli.fold import folded

FORMAT_VERSION = 1
HEARTBEAT_S = 10.0
WAITING_SHOWN = 4
BAR_WIDTH = 20


class Color(StrEnum):
    """When output is coloured; `auto`: on a terminal, unless NO_COLOR is set."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"

    @property
    def forced(self) -> bool | None:
        """What is to be taken for a terminal: None where the stream says."""
        return True if self is Color.ALWAYS else None

    @property
    def banned(self) -> bool | None:
        """Whether there is no colour: None where NO_COLOR says."""
        return None if self is Color.AUTO else self is Color.NEVER


class Screen:
    """Where one command prints; *as_json* moves everything human to stderr."""

    # The wish of the one command line that a process has.
    color: ClassVar[Color] = Color.AUTO

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.results = self._console(stderr=False)
        self.notes = self._console(stderr=True)

    def _console(self, *, stderr: bool) -> Console:
        return Console(
            stderr=stderr,
            highlight=False,
            soft_wrap=True,
            force_terminal=self.color.forced,
            no_color=self.color.banned,
        )

    @property
    def people(self) -> Console:
        """Where words for people go."""
        return self.notes if self.as_json else self.results

    @property
    def width(self) -> int | None:
        """How many columns the terminal has where words for people go; None where there is none."""
        return _width(self.people)

    def tell(self, text: str, style: str = "", *, failed: bool = False) -> None:
        """Print words for people, folded on a terminal; what has *failed* goes to stderr."""
        console = self.notes if failed else self.people
        if not console.is_terminal:
            # Neither folded nor coloured, and a plan for two thousand hosts has many lines.
            console.file.write(f"{text}\n")
            return
        for line in folded(text, _width(console)):
            console.print(Text(line, style=style))

    def document(self, content: Mapping[str, object]) -> None:
        """Print the one JSON document of a command."""
        write_document(json.dumps({"format_version": FORMAT_VERSION, **content}, indent=2) + "\n")

    def line(self, content: Mapping[str, object]) -> None:
        """Print one line of NDJSON."""
        text = json.dumps({"format_version": FORMAT_VERSION, **content})
        self.results.out(text, highlight=False)

    @contextmanager
    def progress(self, heartbeat: float = HEARTBEAT_S) -> Iterator[Say]:
        """Draw what a use case says while the body runs."""
        if not self.notes.file.isatty():
            with _Heartbeat(self.notes, heartbeat) as say:
                yield say
            return
        with self.notes.status("looking around") as status:
            yield lambda doing: _draw(status, doing)


def _width(console: Console) -> int | None:
    return console.width if console.file.isatty() else None


class _Heartbeat:
    """Says when a stage begins, and every so many seconds what it still waits for."""

    def __init__(self, console: Console, every: float) -> None:
        self._console, self._every = console, every
        self._last: Doing | None = None
        self._spoken = 0.0
        self._over, self._lock = Event(), Lock()
        self._heart = Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        self._heart.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._heart.join()

    def __call__(self, doing: Doing) -> None:
        with self._lock:
            begins = self._last is None or self._last.stage != doing.stage
            self._last = doing
            if begins:
                self._speak(doing)

    def _beat(self) -> None:
        due = self._every
        # Where stderr is gone, whoever speaks next in the main thread meets that, and tells.
        with suppress(OSError):
            while not self._over.wait(due):
                with self._lock:
                    silent = time.monotonic() - self._spoken
                    if self._last is not None and silent >= self._every:
                        self._speak(self._last)
                        silent = 0.0
                due = max(0.0, self._every - silent) or self._every

    def _speak(self, doing: Doing) -> None:
        self._spoken = time.monotonic()
        self._console.out(_sentence(doing), highlight=False)


def _draw(status: Status, doing: Doing) -> None:
    # As a Text: in a string, an address in brackets would be taken for markup.
    status.update(Text(f"{_bar(doing)}{_sentence(doing)}"))


def _bar(doing: Doing) -> str:
    """Return how far a stage of several steps is, to see at a glance."""
    if doing.total <= 1:
        return ""
    filled = BAR_WIDTH * doing.done // doing.total
    return f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] "


def _sentence(doing: Doing) -> str:
    waiting = ", ".join(doing.waiting[:WAITING_SHOWN])
    more = len(doing.waiting) - WAITING_SHOWN
    tail = (f", {doing.note}" if doing.note else "") + (
        f", waiting for {waiting}" if waiting else ""
    )
    return f"{doing.stage}: {doing.done}/{doing.total}{tail}" + (
        f" and {more} more" if more > 0 else ""
    )
