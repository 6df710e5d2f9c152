"""A plan as JSON, saved and loaded again; contents stay out of it."""

import json
from collections.abc import Iterator
from dataclasses import replace

from pydantic import TypeAdapter, ValidationError

from rlxdeploy.errors import Finding, InventoryError, Place
from rlxdeploy.model.plan import FORMAT_VERSION, HostPlan, Plan
from rlxdeploy.model.step import MarkDeployment, Step

_PLAN = TypeAdapter(Plan)
_AGAIN = "make the plan again with this rlxdeploy"


def dump_plan(plan: Plan) -> str:
    """Return *plan* as a JSON document, `format_version` first, with a final newline.

    Files appear as source, digest and size; the diffs, which quote them, are left out.
    """
    bare = replace(plan, hosts={name: _without_diffs(part) for name, part in plan.hosts.items()})
    document = {"format_version": plan.format_version, **_PLAN.dump_python(bare, mode="json")}
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
        return _PLAN.validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _no_plan(file, f"not a whole plan: {where}: {first['msg']}") from None


def moved(saved: Plan, fresh: Plan) -> tuple[str, ...]:
    """Return what differs between a saved plan and the one the hosts call for now; () if nothing.

    Who plans, from where and when is no difference.
    """
    found = [*_moved_secrets(saved, fresh)]
    for what in ("job", "world", "topology", "generation", "plan", "release", "deployment"):
        was, now = getattr(saved, what), getattr(fresh, what)
        if was != now:
            found.append(f"{what}: {was} when it was saved, {now} now")
    for name in sorted({*saved.hosts, *fresh.hosts}):
        before, after = saved.hosts.get(name), fresh.hosts.get(name)
        if before is None or after is None:
            found.append(f"{name}: {'not in the saved plan' if before is None else 'gone'}")
        else:
            found += [f"{name}: {line}" for line in _moved(_deeds(before), _deeds(after))]
    return tuple(found)


def _moved_secrets(saved: Plan, fresh: Plan) -> Iterator[str]:
    for source in sorted({*saved.secrets, *fresh.secrets}):
        if saved.secrets.get(source) != fresh.secrets.get(source):
            yield f"secret {source}: not the value that it had when the plan was saved"


def _moved(saved: list[Step], fresh: list[Step]) -> list[str]:
    lines = [f"no longer called for: {step}" for step in saved if step not in fresh]
    lines += [f"now called for: {step}" for step in fresh if step not in saved]
    return lines or ([] if saved == fresh else ["the same steps in another order"])


def _deeds(part: HostPlan) -> list[Step]:
    """Return the steps without what tells of the planner alone."""
    told = {"applied_at", "controller", "owner", "inventory"}
    return [
        MarkDeployment({key: value for key, value in step.fields.items() if key not in told})
        if isinstance(step, MarkDeployment)
        else step
        for step in (*part.stage, *part.go, *part.confirm)
    ]


def _without_diffs(part: HostPlan) -> HostPlan:
    return replace(part, changes=tuple(replace(one, diff="") for one in part.changes))


def _no_plan(file: str, what: str) -> InventoryError:
    return InventoryError([Finding(what, Place(file), remedy=_AGAIN)])
