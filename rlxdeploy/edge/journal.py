"""The journal of runs beside the inventory: one JSON object a line, written as things happen.

Each line is on its way to the disk before the next thing is done: whatever ends us, what had been
done until then can be read there.  No content of a file and no secret is in it.
"""

import json
import os
import secrets
import time
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


def open_journal(inventory: Path, job: str) -> Journal:
    """Return the journal of *job*, to be written by a new run; raises RecordError."""
    path = inventory.resolve().parent / FOLDER / f"{job}.journal"
    try:
        prepare_folder(inventory)
        if path.exists() and path.stat().st_size > LONGEST:
            path.replace(path.with_suffix(".journal.old"))
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror}") from error
    return Journal(path)
