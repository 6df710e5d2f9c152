"""What hosts said of themselves at the last apply, beside the inventory: for when one is silent."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from rlxdeploy.edge.files import FileError, write_atomically
from rlxdeploy.edge.record import FOLDER, RecordError, prepare_folder
from rlxdeploy.errors import InventoryError
from rlxdeploy.model.codec import dump_survey, load_survey
from rlxdeploy.model.survey import HostFacts, JobSeen, Platform, Survey

_PLATFORMS = TypeAdapter(dict[str, Platform])


def remember_facts(inventory: Path, job: str, hosts: Mapping[str, HostFacts]) -> None:
    """Keep what *hosts* are, and not what they have of the job; raises RecordError."""
    bare = {name: replace(one, job=JobSeen(), holders=()) for name, one in hosts.items()}
    path = _path(inventory, job)
    try:
        prepare_folder(inventory)
        write_atomically(path, dump_survey(Survey(bare)).encode())
    except FileError as error:
        raise RecordError(str(error)) from error
    except OSError as error:
        raise RecordError(f"{path}: it cannot be written: {error.strerror}") from error


def remembered_facts(inventory: Path, job: str) -> Mapping[str, HostFacts]:
    """Return what was kept, nothing where it is gone or an older rlxdeploy's."""
    path = _path(inventory, job)
    try:
        return load_survey(path.read_text(encoding="utf-8"), str(path)).hosts
    except (OSError, UnicodeDecodeError, InventoryError):
        return {}


def remembered_platforms(inventory: Path, job: str) -> Mapping[str, Platform]:
    """Return the systems among what `remembered_facts` returns; to read all takes milliseconds."""
    try:
        hosts = json.loads(_path(inventory, job).read_text(encoding="utf-8"))["hosts"]
        return _PLATFORMS.validate_python({name: one["platform"] for name, one in hosts.items()})
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def forget_facts(inventory: Path, job: str) -> None:
    """Keep nothing of *job*'s hosts."""
    _path(inventory, job).unlink(missing_ok=True)


def _path(inventory: Path, job: str) -> Path:
    return inventory.resolve().parent / FOLDER / f"{job}.facts"
