"""Files on the controller: what is shipped with us, what a person wrote, what we leave behind."""

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp

from rlxdeploy.errors import Finding, InventoryError, Place, RlxDeployError

_PACKAGE = Path(__file__).resolve().parents[1]

# A wheel carries templates and schemas inside the package; a checkout has them beside it.
_DATA_HOMES = (_PACKAGE / "_data", _PACKAGE.parent)

_BOM = "\ufeff"


class FileError(RlxDeployError):
    """A file on the controller cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text without its byte order mark, and whether it had one."""

    content: str
    had_bom: bool


def shipped(relative: str) -> Path:
    """Return the path of a template or schema, such as `templates/rank.env.j2`.

    Raises FileError if neither the installation nor the checkout has it.
    """
    for home in _DATA_HOMES:
        if (path := home / relative).is_file():
            return path
    raise FileError(f"{relative} is not in {' or '.join(map(str, _DATA_HOMES))}; reinstall")


def beside(folder: Path, name: str) -> Path:
    """Return the file that an inventory in *folder* calls *name*, which may begin with `~`.

    Raises OSError for the home of nobody, and for a name that no file can have.
    """
    if "\0" in name:
        raise OSError(errno.EINVAL, "a NUL is in no file's name")
    try:
        return folder / Path(name).expanduser()
    except RuntimeError as error:
        raise OSError(errno.EINVAL, "nobody here has that home folder") from error


def read_text(path: Path) -> Text:
    """Return the UTF-8 text of a file that a person named; line ends stay as they are.

    Raises InventoryError, with the place, if there is no such file or it is no UTF-8.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InventoryError([_unreadable(path, error)]) from error
    try:
        content = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        place = _place_of_byte(path, raw, error.start)
        finding = Finding("it is not UTF-8 here", place, remedy="save the file as UTF-8")
        raise InventoryError([finding]) from error
    return Text(content.removeprefix(_BOM), content.startswith(_BOM))


def _unreadable(path: Path, error: OSError) -> Finding:
    place = Place(str(path))
    match error:
        case FileNotFoundError():
            return Finding("there is no such file", place)
        case IsADirectoryError():
            return Finding("it is a folder", place, remedy="name the inventory file in it")
        case _:
            return Finding(f"it cannot be read: {error.strerror}", place)


def _place_of_byte(path: Path, raw: bytes, offset: int) -> Place:
    before = raw[:offset]
    line_start = before.rfind(b"\n") + 1
    column = len(before[line_start:].decode("utf-8").removeprefix(_BOM)) + 1
    return Place(str(path), before.count(b"\n") + 1, column)


def write_atomically(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Put *content* at *path* so that a reader sees the old file or the new one, never a part.

    The file beside it is private until it is whole.  Raises FileError, leaving the old file as it
    was, on failure and where *path* is a symbolic link.
    """
    if path.is_symlink():
        raise FileError(f"{path}: it is a symbolic link; remove it or name its target")
    try:
        _replace(path, content, mode)
    except OSError as error:
        raise FileError(f"{path}: it cannot be written: {error.strerror}") from error


def _replace(path: Path, content: bytes, mode: int) -> None:
    descriptor, beside = mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            os.fchmod(descriptor, stat.S_IMODE(mode))
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        Path(beside).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(beside).unlink()
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have the disk know which files are in *folder*; raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
