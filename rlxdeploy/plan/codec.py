"""A plan as JSON, saved and loaded again; contents stay out of it."""

import json
from dataclasses import replace
from functools import cache

from pydantic import TypeAdapter, ValidationError

from rlxdeploy.errors import Finding, InventoryError, Place
from rlxdeploy.model.plan import FORMAT_VERSION, HostPlan, Plan

_AGAIN = "make the plan again with this rlxdeploy"


@cache
def _plans() -> TypeAdapter[Plan]:
    # Made when needed: it takes twenty milliseconds.
    return TypeAdapter(Plan)


def dump_plan(plan: Plan) -> str:
    """Return *plan* as a JSON document, `format_version` first, with a final newline.

    Files appear as source, digest and size; the diffs, which quote them, are left out.
    """
    bare = replace(plan, hosts={name: _without_diffs(part) for name, part in plan.hosts.items()})
    document = {"format_version": plan.format_version, **_plans().dump_python(bare, mode="json")}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def load_plan(text: str, file: str) -> Plan:
    """Read what `dump_plan` wrote; *file* is where *text* comes from.

    Raises InventoryError where it is no plan, or one of another format version.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise _no_plan(file, f"this is no JSON: {error}") from None
    version = document.get("format_version") if isinstance(document, dict) else None
    if type(version) is not int:
        raise _no_plan(file, "this is no plan: it has no format_version")
    if version != FORMAT_VERSION:
        raise _no_plan(file, f"plan format {version}, and only {FORMAT_VERSION} is known here")
    try:
        return _plans().validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _no_plan(file, f"not a whole plan: {where}: {first['msg']}") from None


def _without_diffs(part: HostPlan) -> HostPlan:
    return replace(part, changes=tuple(replace(one, diff="") for one in part.changes))


def _no_plan(file: str, what: str) -> InventoryError:
    return InventoryError([Finding(what, Place(file), remedy=_AGAIN)])
