"""Reading an inventory: one file in, one `Loaded` out, or every finding at once."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rlxdeploy.edge.files import beside, read_text
from rlxdeploy.errors import Finding, InventoryError, Place, Severity
from rlxdeploy.model.explain import explain
from rlxdeploy.model.inventory import Inventory
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.locate import locate

# tomllib puts the position into its message; attributes for it came with Python 3.14.
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_inventory(path: Path) -> Loaded:
    """Return the inventory in *path*, with the places of its keys.

    Raises InventoryError with all findings if the file is missing, no TOML, or says what an
    inventory cannot say.
    """
    text = read_text(path)
    notices = (_bom(path),) if text.had_bom else ()
    try:
        document = _parsed(path, text.content)
        places = locate(text.content)
    except RecursionError:
        raise InventoryError([Finding("it is nested too deeply", Place(str(path)))]) from None
    try:
        inventory = Inventory.model_validate(document)
    except ValidationError as error:
        findings = explain(error, document, places, str(path))
        raise InventoryError((*findings, *notices)) from error
    return Loaded(path.absolute(), str(path), inventory, places, notices)


def missing_sources(loaded: Loaded) -> tuple[Finding, ...]:
    """Return a warning for each file of the job that is not there now."""
    folder = Path(loaded.path).parent
    return tuple(
        replace(
            loaded.finding(("job", "files", index, "source"), f"there is no file {file.source}"),
            severity=Severity.WARNING,
        )
        for index, file in enumerate(loaded.inventory.job.files)
        if not _is_file(folder, file.source)
    )


def _is_file(folder: Path, name: str) -> bool:
    try:
        return beside(folder, name).is_file()
    except OSError:
        return False


def _bom(path: Path) -> Finding:
    message = "a byte order mark was dropped"
    return Finding(message, Place(str(path), 1, 1), severity=Severity.NOTICE)


def _parsed(path: Path, content: str) -> dict[str, Any]:
    try:
        return tomllib.loads(content)
    except ValueError as error:
        raise InventoryError([_syntax(path, content, str(error))]) from error


def _syntax(path: Path, content: str, message: str) -> Finding:
    found = _POSITION.search(message)
    if found is None:
        return Finding(message, Place(str(path)))
    lines = content.split("\n")
    end = (len(lines), len(lines[-1]) + 1)
    position = (int(found[1]), int(found[2])) if found[1] else end
    what = message[: found.start()]
    return Finding(f"{what[:1].lower()}{what[1:]}", Place(str(path), *position))
