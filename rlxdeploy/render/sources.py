"""What a plan is made of on the controller, so that it can be told later what of it has changed."""

import hashlib
from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from rlxdeploy.model.job import Secret
from rlxdeploy.model.loaded import spelled
from rlxdeploy.model.locate import KeyPath
from rlxdeploy.render.inputs import Inputs

_DIGITS = 12


def sources_of(inputs: Inputs) -> Mapping[str, str]:
    """Return the start of a digest for each written key, each job file and each own template.

    Of a secret it is that of the place where its value is, never of the value.
    """
    keys = {f"{inputs.origin}: {name}": _digest(value) for name, value in _keys(inputs)}
    files = {name: _digest(content) for name, content in inputs.sources.items()}
    templates = {f"template {name}": _digest(text) for name, text in inputs.overrides.items()}
    return keys | files | templates


def _keys(inputs: Inputs) -> Iterator[tuple[str, object]]:
    for path in inputs.loaded.places:
        value = _at(inputs.loaded.inventory, path)
        # A list is told as a whole.
        if value is not None and isinstance(path[-1], str) and not _is_table(value):
            yield spelled(path), value


def _at(value: object, path: KeyPath) -> object:
    """Return the value of a key; None where the inventory has none by that name."""
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, tuple) and isinstance(step, int):
            value = value[step] if step < len(value) else None
        else:
            value = getattr(value, str(step), None)
    return value


def _is_table(value: object) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_table, value))
    return isinstance(value, Mapping | BaseModel) and not isinstance(value, Secret)


def _digest(value: object) -> str:
    content = value if isinstance(value, bytes) else repr(value).encode()
    return hashlib.sha256(content).hexdigest()[:_DIGITS]
