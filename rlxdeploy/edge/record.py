"""The folder `.rlxdeploy/` beside an inventory: private, ignored by git, written atomically."""

import json
import os
import secrets
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rlxdeploy.edge.files import FileError, write_atomically
from rlxdeploy.errors import RlxDeployError
from rlxdeploy.model.record import FORMAT_VERSION, Record

FOLDER = ".rlxdeploy"

# A diff of more than this is not read; the digests stand for it.
LONGEST_KNOWN = 64 << 10

# As long as the digests that it keys.
_KEY_BYTES = 32


class RecordError(RlxDeployError):
    """The record beside the inventory cannot be read or written."""


@cache
def _records() -> TypeAdapter[Record]:
    # Made when needed: it takes fifteen milliseconds.
    return TypeAdapter(Record)


def new_deployment() -> str:
    """Return a fresh random deployment id of 128 bits, in hex."""
    return secrets.token_hex(16)


def read_record(inventory: Path, job: str) -> Record | None:
    """Return the record of *job*, None where there is none; raises RecordError on a broken one."""
    path = _path(inventory, job)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from error
    try:
        version = json.loads(content).get("format_version")
        if version != FORMAT_VERSION:
            raise RecordError(f"{path}: format_version is {version!r}, not {FORMAT_VERSION}")
        return _records().validate_json(content)
    except (ValueError, AttributeError, ValidationError) as error:
        remedy = "remove it; the hosts still know what is deployed"
        raise RecordError(f"{path}: no record of ours ({error}); {remedy}") from error


def write_record(inventory: Path, record: Record) -> None:
    """Put *record* in place of the last one, or leave that untouched and raise RecordError."""
    path = _path(inventory, record.job)
    try:
        prepare_folder(inventory)
        write_atomically(path, json.dumps(asdict(record), indent=2).encode() + b"\n")
    except (OSError, FileError) as error:
        raise _unwritten(path, error) from error


def forget_record(inventory: Path, job: str) -> None:
    """Have no record of *job* and nothing kept of it."""
    _path(inventory, job).unlink(missing_ok=True)
    _key_path(inventory, job).unlink(missing_ok=True)
    shutil.rmtree(inventory.resolve().parent / FOLDER / f"{job}.known", ignore_errors=True)


def prepare_folder(inventory: Path) -> Path:
    """Return the folder beside *inventory*, made with mode 0700 and its own .gitignore."""
    folder = inventory.resolve().parent / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    return folder


def _unwritten(path: Path, error: OSError | FileError) -> RecordError:
    if isinstance(error, FileError):  # names its file
        return RecordError(str(error))
    return RecordError(f"{error.filename or path}: it cannot be written: {error.strerror}")


def _path(inventory: Path, job: str) -> Path:
    return inventory.resolve().parent / FOLDER / f"{job}.json"


def digest_key(inventory: Path, job: str) -> bytes:
    """Return the key under which the secrets of *job* are digested, made at its first use.

    It is kept, so that a secret that has not changed has the same digest in every run.  Raises
    RecordError where it can be neither read nor made.
    """
    path = _key_path(inventory, job)
    try:
        prepare_folder(inventory)
        with suppress(FileExistsError):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
        key = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from error
    if len(key) != _KEY_BYTES:
        raise RecordError(f"{path}: {len(key)} bytes are no key; remove it, a new one will be made")
    return key


def _key_path(inventory: Path, job: str) -> Path:
    return inventory.resolve().parent / FOLDER / f"{job}.digest-key"


def remember(inventory: Path, job: str, contents: Mapping[str, bytes]) -> None:
    """Keep *contents* by digest for the diffs of later plans; raises RecordError."""
    folder = inventory.resolve().parent / FOLDER / f"{job}.known"
    try:
        prepare_folder(inventory)
        folder.mkdir(mode=0o700, exist_ok=True)
        for digest, content in contents.items():
            if len(content) <= LONGEST_KNOWN and not (folder / digest).exists():
                write_atomically(folder / digest, content)
    except (OSError, FileError) as error:
        raise _unwritten(folder, error) from error


def remember_only(inventory: Path, job: str, digests: Collection[str]) -> None:
    """Keep none but *digests* of what was remembered; what cannot be removed does no harm."""
    folder = inventory.resolve().parent / FOLDER / f"{job}.known"
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name not in digests:
                path.unlink()


def known_contents(inventory: Path, job: str) -> Mapping[str, bytes]:
    """Return the contents that the last apply kept, by digest; none where nothing was kept."""
    folder = inventory.resolve().parent / FOLDER / f"{job}.known"
    try:
        return {path.name: path.read_bytes() for path in folder.iterdir()}
    except OSError:
        return {}
