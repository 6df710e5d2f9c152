"""The journal of runs beside the inventory: one JSON object a line, written as things happen.

Each line is on its way to the disk before the next thing is done: whatever ends us, what had been
done until then can be read there.  No content of a file and no secret is in it.
"""

import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlxdeploy.edge.record import FOLDER, RecordError, prepare_folder

# Some thousand runs; then the older half moves to `.old`, in place of what was there.
LONGEST = 4 << 20


@dataclass(frozen=True, slots=True)
class Journal:
    """The lines of one run at *path*; *run* tells them from those of other runs."""

    path: Path
    run: str = field(default_factory=lambda: secrets.token_hex(4))

    def write(self, event: str, **fields: object) -> None:
        """Append one line; raises RecordError."""
        told = {"at": round(time.time(), 3), "run": self.run, "event": event, **fields}
        line = json.dumps(told, ensure_ascii=False) + "\n"
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, line.encode())
            finally:
                os.close(file)
        except OSError as error:
            raise RecordError(f"{self.path}: cannot be written: {error.strerror}") from error


def failed_last(inventory: Path, job: str) -> frozenset[str]:
    """Return the hosts that failed in the last run of *job*; none where none is known.

    Raises RecordError where the journal cannot be read.
    """
    path = _path(inventory, job)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
    return failed_in(list(_events(text.splitlines())))


def failed_in(events: list[Mapping[str, object]]) -> frozenset[str]:
    """Return the hosts that failed in the last run of *events*.

    A run that did not live to say so has failed on every host that it had not finished.
    """
    run = events[-1].get("run") if events else None
    failed: set[str] = set()
    for event in events:
        if event.get("run") != run:
            continue
        if event["event"] == "begin":
            failed |= _names(event.get("hosts"))
        elif event["event"] == "host" and event.get("did") in ("changed", "confirmed"):
            failed.discard(str(event.get("host")))
        elif event["event"] == "end":
            failed = _names(event.get("failed"))
    return frozenset(failed)


def _names(told: object) -> set[str]:
    return {*map(str, told)} if isinstance(told, list) else set()


def _events(lines: Iterable[str]) -> Iterator[Mapping[str, object]]:
    """Yield what lines tell; one that was cut off when the machine went down tells nothing."""
    for line in lines:
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict) and "event" in told:
            yield told


def _path(inventory: Path, job: str) -> Path:
    return inventory.resolve().parent / FOLDER / f"{job}.journal"


def open_journal(inventory: Path, job: str) -> Journal:
    """Return the journal of *job*, to be written by a new run; raises RecordError."""
    path = _path(inventory, job)
    try:
        prepare_folder(inventory)
        if path.exists() and path.stat().st_size > LONGEST:
            path.replace(path.with_suffix(".journal.old"))
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror}") from error
    return Journal(path)
