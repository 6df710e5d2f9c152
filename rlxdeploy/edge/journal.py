"""The journal of runs beside the inventory: one JSON object a line, written as things happen.

Each line is with the kernel before the next thing is done: whatever ends us, what had been done
until then can be read there.  What has to outlive a power cut of this machine is synced besides.
No content of a file and no secret is in it.
"""

import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlxdeploy.edge.files import sync_folder
from rlxdeploy.edge.record import FOLDER, RecordError, prepare_folder

# Some thousand runs; then the older half moves to `.old`, in place of what was there.
LONGEST = 4 << 20


@dataclass(frozen=True, slots=True)
class Journal:
    """The lines of one run at *path*; *run* tells them from those of other runs."""

    path: Path
    run: str = field(default_factory=lambda: secrets.token_hex(4))

    def write(self, event: str, **fields: object) -> None:
        """Append one line; raises RecordError where not all of it could be written."""
        told = {"at": round(time.time(), 3), "run": self.run, "event": event, **fields}
        line = json.dumps(told, ensure_ascii=False) + "\n"
        self._with_file(lambda file: _append(file, line.encode()))

    def sync(self) -> None:
        """Have all lines on the disk; raises RecordError."""
        self._with_file(self._sync)

    def _sync(self, file: int) -> None:
        os.fsync(file)
        sync_folder(self.path.parent)

    def _with_file(self, work: Callable[[int], None]) -> None:
        try:
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                work(file)
            finally:
                os.close(file)
        except OSError as error:
            raise _unwritten(self.path, error) from error


def _append(file: int, line: bytes) -> None:
    size = os.fstat(file).st_size
    # One that a full disk or the machine's end has cut off is not to swallow this one.
    left = line if not size or os.pread(file, 1, size - 1) == b"\n" else b"\n" + line
    while left:
        left = left[os.write(file, left) :]


def _unwritten(path: Path, error: OSError) -> RecordError:
    return RecordError(f"{path}: cannot be written: {error.strerror}")


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
        raise _unwritten(path, error) from error
    return Journal(path)
