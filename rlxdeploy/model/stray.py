"""What on a host is not as the last apply left it.

An apply notes in `deployment.json` every file with its digest, its mode, and its owner where that
matters.  The note never leaves the host's own answer: a survey keeps what came of comparing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

# The folders of a release in which nobody else has anything to write.
_OURS = ("/current/env/", "/current/process/")
_DROP_IN = re.compile(r"/rlx-[^/]+@[^/]*\.service\.d/")


class How(StrEnum):
    """In which way something went astray."""

    CHANGED = "changed"
    MODE = "mode"
    OWNER = "owner"
    MISSING = "missing"
    ADDED = "added"
    DROP_IN = "drop-in"
    SWITCHED = "switched"
    DISABLED = "disabled"
    ENABLED = "enabled"


@dataclass(frozen=True, slots=True)
class Stray:
    """A path, or the name of a unit, that is not as the last apply left it."""

    path: str
    how: How


@dataclass(frozen=True, slots=True)
class Noted:
    """One file as an apply left it; *mode* None where it may be any, *owner* "" where anybody."""

    digest: str
    mode: int | None = None
    owner: str = ""


class Seen(Protocol):
    """A file as a host has it (`model.survey.FileSeen`)."""

    @property
    def digest(self) -> str:
        """The sha256 of its content."""

    @property
    def mode(self) -> int:
        """Its permissions."""

    @property
    def owner(self) -> str:
        """The name of its owner."""

    @property
    def kind(self) -> str:
        """`file`, or `link`."""


def strays(noted: Mapping[str, Noted], seen: Mapping[str, Seen]) -> Iterator[Stray]:
    """Yield the paths that are other than *noted*, or lie beside; without a note, drop-ins alone.

    A drop-in that we have not noted is a person's.
    """
    for path in sorted({*noted, *seen}):
        how = _changed(noted[path], seen.get(path)) if path in noted else _beside(path)
        if how is How.DROP_IN or (noted and how is not None):
            yield Stray(path, how)


def _changed(noted: Noted, seen: Seen | None) -> How | None:
    if seen is None:
        return How.MISSING
    if seen.kind != "file" or seen.digest != noted.digest:
        return How.CHANGED
    if noted.mode is not None and seen.mode != noted.mode:
        return How.MODE
    return How.OWNER if noted.owner and seen.owner != noted.owner else None


def _beside(path: str) -> How | None:
    if any(folder in path for folder in _OURS):
        return How.ADDED
    return How.DROP_IN if _DROP_IN.search(path) else None
