"""The one JSON document of a command: whole, and never a second one behind it."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class _Stdout:
    has_document: bool = False


_STDOUT = _Stdout()


def expect_document() -> None:
    """Begin with a command: nothing has been written yet."""
    _STDOUT.has_document = False


def write_document(text: str) -> None:
    """Write *text* on stdout, unless there is a document already.

    Signals that raise are held back until all of it is out; a second one ends the process at once,
    as nobody may be reading.
    """
    if _STDOUT.has_document:
        return
    with _held_back():
        _STDOUT.has_document = True
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def _held_back() -> Iterator[None]:
    heard: list[int] = []

    def hear(number: int, _frame: FrameType | None) -> None:
        if heard:
            os._exit(128 + number)
        heard.append(number)

    # What is ignored stays ignored.
    taken = [one for one in SIGNALS if callable(signal.getsignal(one))]
    before = {one: signal.signal(one, hear) for one in taken}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    for number in heard:
        signal.raise_signal(number)
