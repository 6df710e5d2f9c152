"""The use case `plan`: compile, and compare with the hosts."""

from dataclasses import dataclass, replace

from rlxdeploy.app.circumstances import order_for
from rlxdeploy.app.compile import Compiled, Request, compile_job
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import Say
from rlxdeploy.model.files import RemoteFiles
from rlxdeploy.model.plan import Plan
from rlxdeploy.plan.make import make_plan


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with the files that it names."""

    compiled: Compiled
    plan: Plan
    files: RemoteFiles


def plan_job(
    request: Request,
    lab: Lab,
    say: Say,
    *,
    join_timeout: float | None = None,
    adopt: bool = False,
) -> Planned:
    """Return what apply would do now; changes nothing.

    Raises what `compile_job` raises, and CompileError where another deployment holds a host.
    """
    compiled = compile_job(request, lab, say)
    order = order_for(compiled.loaded, compiled.survey, join_timeout=join_timeout, adopt=adopt)
    plan = make_plan(compiled.resolution, compiled.files, compiled.survey, order)
    noticed = replace(plan, notices=(*compiled.loaded.notices, *plan.notices))
    return Planned(compiled, noticed, compiled.files(plan.generation))
