"""From pydantic's account of what is wrong to findings a person can act on.

pydantic names a table's union branches and keys in its locations; the document itself tells which
steps are real.  Values are shown only where they cannot be secrets.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from rlxdeploy.errors import Finding, Place
from rlxdeploy.model.hints import did_you_mean
from rlxdeploy.model.inventory import ARRAYS_OF_TABLES, TABLES, Secret
from rlxdeploy.model.loaded import spelled
from rlxdeploy.model.locate import KeyPath, Position
from rlxdeploy.model.written import Written

_EXPECTED: Final = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "a string, in quotes",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "mapping_type": "a table",
    "dict_type": "a table",
}
_KINDS: Final = (
    (str, "string"),
    ((int, float), "number"),
    (dict, "table"),
    (list, "list"),
)
_PLAIN: Final = {
    "missing": "it is missing",
    "too_short": "it is an empty list",
    "finite_number": "it must be a finite number",
}
_BOUNDS: Final = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
}


def explain(
    error: ValidationError,
    document: Mapping[str, Any],
    places: Mapping[KeyPath, Position],
    file: str,
) -> tuple[Finding, ...]:
    """Return what *error* found in *document*, in the order of the file."""
    found = []
    for detail in error.errors(include_url=False):
        path, value = _real(detail["loc"], document)
        message, remedy = _said(detail, path, value)
        place = Place(file, *places.get(path, (0, 0)))
        missing = (detail["loc"][-1],) if detail["type"] == "missing" else ()
        found.append(Finding(message, place, spelled((*path, *missing)), remedy))
    return tuple(sorted(found, key=lambda finding: finding.place or Place(file)))


def _real(location: Sequence[str | int], document: Mapping[str, Any]) -> tuple[KeyPath, Any]:
    """Return the part of *location* that the document has, and the value there."""
    path: KeyPath = ()
    value: Any = document
    for step in location:
        is_key = isinstance(value, dict) and step in value
        if is_key or (isinstance(value, list) and step in range(len(value))):
            path, value = (*path, step), value[step]
    return path, value


def _said(detail: Mapping[str, Any], path: KeyPath, value: object) -> tuple[str, str]:
    """Return the message and the remedy for one of pydantic's errors."""
    kind, context = detail["type"], detail.get("ctx", {})
    match kind:
        case "extra_forbidden":
            return "unknown key", _remedy_for_unknown(path)
        case "value_error":
            return str(context["error"]), ""
        case "enum":
            return _not_in_vocabulary(context["expected"], value)
        case _ if kind in _BOUNDS:
            name, words = _BOUNDS[kind]
            return f"it must be {words} {context[name]:g}, not {value!r}", ""
        case _ if kind in _EXPECTED:
            return f"expected {_expected(kind, path)}, not {_described(value, path)}", ""
        case _:
            return _PLAIN.get(kind, detail["msg"]), ""


def _remedy_for_unknown(path: KeyPath) -> str:
    """Say what was probably meant: a near key of this table, or this key of another table.

    Where neither is so, all keys of this table are told.
    """
    *around, key = path
    words = tuple(step for step in around if isinstance(step, str))
    here = Secret if "env" in words else TABLES[words]
    if hint := did_you_mean(str(key), _keys(here)):
        return hint
    homes = [table for table, model in TABLES.items() if key in _keys(model)]
    return f"it belongs {_home(homes[0])}" if homes else f"known here: {', '.join(_keys(here))}"


def _home(table: tuple[str, ...]) -> str:
    if not table:
        return "at the top, above the first [table]"
    name = ".".join(table)
    return f"in [[{name}]]" if table in ARRAYS_OF_TABLES else f"in [{name}]"


def _keys(model: type[Written]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _not_in_vocabulary(expected: str, value: object) -> tuple[str, str]:
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    if not isinstance(value, str):
        return f"expected one of {', '.join(words)}, not {_described(value, ())}", ""
    return f"{value!r} is none of {', '.join(words)}", did_you_mean(value, words)


def _expected(kind: str, path: KeyPath) -> str:
    if path in ARRAYS_OF_TABLES:
        return f"a list of tables, each headed [[{spelled(path)}]]"
    return _EXPECTED[kind]


def _described(value: object, path: KeyPath) -> str:
    """Name the TOML kind of *value*; show the value too unless an environment may hide it."""
    if isinstance(value, bool):
        return str(value).lower()
    kind = next((name for types, name in _KINDS if isinstance(value, types)), "date or time")
    if isinstance(value, str | int | float) and "env" not in path:
        return f"the {kind} {value!r}"
    return f"a {kind}"
