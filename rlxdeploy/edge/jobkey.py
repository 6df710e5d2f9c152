"""The key by which the ranks of a job know one another, beside the inventory: 256 bits in hex."""

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

from rlxdeploy.edge.record import FOLDER, RecordError, prepare_folder

_BYTES = 32
_KEY = re.compile(r"[0-9a-f]{64}\n?")


def read_key(inventory: Path, job: str) -> str:
    """Return the key of *job*, "" where there is none; raises RecordError on what is no key."""
    path = _path(inventory, job)
    try:
        text = path.read_bytes().decode("ascii", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from error
    if _KEY.fullmatch(text) is None:
        what = "this is not the key of 64 hex digits that was here"
        raise RecordError(f"{path}: {what}; put that back, or remove the file to have a new key")
    return text.strip()


def make_key(inventory: Path, job: str) -> str:
    """Return the key of *job*, made now if there is none; one that is there is never replaced.

    Raises RecordError where it can be neither read nor made.
    """
    if key := read_key(inventory, job):
        return key
    path = _path(inventory, job)
    try:
        _place(prepare_folder(inventory), path)
    except OSError as error:
        raise RecordError(f"{error.filename or path}: {error.strerror}") from error
    return read_key(inventory, job)


def forget_key(inventory: Path, job: str) -> None:
    """Have no key of *job*: for a job that is on no host any more."""
    with suppress(NotADirectoryError):
        _path(inventory, job).unlink(missing_ok=True)


def _place(folder: Path, path: Path) -> None:
    """Have a whole key at *path*: whoever makes another at the same time takes this one."""
    descriptor, beside = mkstemp(prefix=f".{path.name}.", dir=folder)  # for its owner alone
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(secrets.token_hex(_BYTES).encode() + b"\n")
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            path.hardlink_to(beside)
    finally:
        Path(beside).unlink()


def _path(inventory: Path, job: str) -> Path:
    return inventory.resolve().parent / FOLDER / f"{job}.key"
