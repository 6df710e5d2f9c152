"""The measured speeds beside an inventory: of machines, and so for all the jobs of its folder."""

import json
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rlxdeploy.edge.files import FileError, write_atomically
from rlxdeploy.edge.record import FOLDER, RecordError, prepare_folder
from rlxdeploy.model.speeds import FORMAT_VERSION, Speeds

# No job's file ends so.
_NAME = "machines.speeds"
_SPEEDS = TypeAdapter(Speeds)


def read_speeds(inventory: Path) -> Speeds:
    """Return what is kept beside *inventory*; raises RecordError where it cannot be read."""
    path = _path(inventory)
    try:
        content = path.read_bytes()
        found = _SPEEDS.validate_json(content)
    except FileNotFoundError:
        return Speeds()
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        remedy = "remove it, and measure again with probe --bench"
        raise RecordError(
            f"{path}: no speeds of ours ({error.errors()[0]['msg']}); {remedy}"
        ) from error
    if found.format_version != FORMAT_VERSION:
        what = f"format_version is {found.format_version}, not {FORMAT_VERSION}"
        raise RecordError(f"{path}: {what}; remove it, and measure again with probe --bench")
    return found


def write_speeds(inventory: Path, speeds: Speeds) -> None:
    """Put *speeds* in place of the last ones; raises RecordError where they cannot be written."""
    try:
        prepare_folder(inventory)
        text = json.dumps(asdict(speeds), indent=2)
        write_atomically(_path(inventory), text.encode() + b"\n")
    except FileError as error:
        raise RecordError(str(error)) from error
    except OSError as error:
        raise RecordError(f"{_path(inventory)}: it cannot be written: {error.strerror}") from error


def _path(inventory: Path) -> Path:
    return inventory.resolve().parent / FOLDER / _NAME
