"""Saved plans: written, shown, and carried out exactly, or refused because the world has moved."""

from pathlib import Path

from rlxdeploy.app.compile import Request
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.plan import Planned, Wish, plan_job
from rlxdeploy.app.say import Say
from rlxdeploy.edge.files import FileError, read_text, write_atomically
from rlxdeploy.errors import InventoryError, Severity, Stale, Untrusted, UsageError
from rlxdeploy.model.plan import Plan
from rlxdeploy.model.step import MarkDeployment
from rlxdeploy.plan.codec import dump_plan, load_plan
from rlxdeploy.plan.moved import moved

# No TOML document begins with a brace, and every saved plan does.
_BEGINNING = "{"


def save_plan(planned: Planned, path: Path) -> None:
    """Write a plan without contents or secrets, readable by its owner alone.

    Raises FileError, and UsageError for a plan of NodeCaps, which nobody could carry out.
    """
    if planned.compiled.loaded.told:
        what = "a plan of NodeCaps changes nothing on any host, so --out has nothing to save"
        remedy = "plan without --survey, or with one that `rlxdeploy probe --out FILE` saved"
        raise UsageError(f"{what}; {remedy}")
    write_atomically(path, dump_plan(planned.plan).encode())


def is_plan(path: Path) -> bool:
    """Tell a saved plan from an inventory by its content; raises InventoryError on no file."""
    return read_text(path).content.lstrip().startswith(_BEGINNING)


def read_plan(path: Path) -> Plan:
    """Return a saved plan; raises InventoryError where the file holds none."""
    return load_plan(read_text(path).content, str(path))


def plan_again(saved: Plan, lab: Lab, say: Say) -> Planned:
    """Return *saved* with the files it names, made anew from what it was asked for.

    Raises Stale with all that has moved where the hosts, the inventory or a source would now call
    for anything else; and what `plan_job` raises.
    """
    asked = saved.asked
    wish = Wish(saved.join_timeout, asked.adopt, saved.deployment, asked.scope)
    fresh = _planned(saved, lab, say, wish)
    if lines := moved(saved, fresh.plan):
        raise Stale(lines)
    return fresh


def _planned(saved: Plan, lab: Lab, say: Say, wish: Wish) -> Planned:
    """Return what the hosts call for now.

    Raises Stale where no plan can be made any more, as a source or a device is gone, and where a
    host shows another key: it is not the one of the plan.
    """
    try:
        return plan_job(request_of(saved), lab, say, wish)
    except (InventoryError, FileError) as error:
        raise Stale(_gone(error)) from error
    except ExceptionGroup as group:
        strangers, others = group.split(Untrusted)
        if strangers is None:
            raise
        stale = Stale([str(one) for one in strangers.exceptions])
        if others is None:
            raise stale from None
        raise ExceptionGroup(group.message, [stale, *others.exceptions]) from None


def _gone(error: InventoryError | FileError) -> list[str]:
    """Return what the plan rests on and is not there any more."""
    if isinstance(error, FileError):
        return [str(error)]
    return [str(one) for one in error.findings if one.severity is Severity.ERROR]


def request_of(saved: Plan) -> Request:
    """Return what *saved* was asked for."""
    asked = saved.asked
    return Request(
        inventory=Path(asked.inventory),
        templates=Path(asked.templates) if asked.templates else None,
        skip_unreachable=asked.skip_unreachable,
        promote=asked.promote,
        max_fail=asked.max_fail,
        placement=_placement(saved),
    )


def _placement(saved: Plan) -> str:
    """Return how *saved* shares out the layers, "" where it marks no host."""
    steps = (step for part in saved.hosts.values() for step in part.go)
    marks = (step.fields.get("placement") for step in steps if isinstance(step, MarkDeployment))
    return next((str(one) for one in marks if one), "")
