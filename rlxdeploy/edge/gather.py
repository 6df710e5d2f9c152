"""What a compile needs from the controller besides the inventory: files, templates, names."""

import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from rlxdeploy.edge.files import FileError, beside, shipped
from rlxdeploy.errors import InventoryError
from rlxdeploy.model.loaded import Loaded

TEMPLATES = ("rank.env.j2", "rlx@.service.j2")


def shipped_templates() -> Mapping[str, str]:
    """Return our templates by file name."""
    return {name: shipped(f"templates/{name}").read_text(encoding="utf-8") for name in TEMPLATES}


def own_templates(folder: Path | None) -> Mapping[str, str]:
    """Return the person's templates by file name, none without a folder.

    Raises FileError where there is no such folder, or a file in it replaces none of ours.
    """
    if folder is None:
        return {}
    try:
        found = sorted(path for path in folder.iterdir() if path.name.endswith(".j2"))
        texts = {path.name: path.read_text(encoding="utf-8") for path in found}
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"templates in {folder}: {error}") from error
    if strange := sorted(set(texts) - set(TEMPLATES)):
        raise FileError(
            f"{folder}: {', '.join(strange)} replaces no template; ours are {', '.join(TEMPLATES)}"
        )
    return texts


def sources(loaded: Loaded) -> Mapping[str, bytes]:
    """Return the content of every `[[job.files]]` by `source` as written.

    Raises InventoryError with each file that cannot be read, at its place.
    """
    folder = Path(loaded.path).parent
    contents: dict[str, bytes] = {}
    findings = []
    for index, file in enumerate(loaded.inventory.job.files):
        try:
            contents[file.source] = beside(folder, file.source).read_bytes()
        except OSError as error:
            key = ("job", "files", index, "source")
            findings.append(loaded.finding(key, f"{file.source}: {error.strerror}"))
    if findings:
        raise InventoryError(findings)
    return contents


def looked_up(names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the addresses the controller's resolver has for each name; none where it has none."""
    return {name: _addresses(name) for name in names}


def _addresses(name: str) -> tuple[str, ...]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
