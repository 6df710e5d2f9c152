"""The use case `plan`: compile, and compare with the hosts."""

from dataclasses import dataclass, replace

from rlxdeploy.app.circumstances import order_for
from rlxdeploy.app.compile import Compiled, Request, compile_job
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import Say
from rlxdeploy.model.files import RemoteFiles
from rlxdeploy.model.plan import Asked, Plan
from rlxdeploy.plan.make import make_plan


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with the files that it names."""

    compiled: Compiled
    plan: Plan
    files: RemoteFiles


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants of a plan besides the inventory.

    *deployment* is the id to give where neither the record nor the hosts know one.
    """

    join_timeout: float | None = None
    adopt: bool = False
    deployment: str | None = None


def plan_job(request: Request, lab: Lab, say: Say, wish: Wish | None = None) -> Planned:
    """Return what apply would do now; changes nothing.

    Raises what `compile_job` raises, and CompileError where another deployment holds a host.
    """
    wish = wish or Wish()
    compiled = compile_job(request, lab, say)
    order = order_for(
        compiled.loaded,
        compiled.survey,
        join_timeout=wish.join_timeout,
        adopt=wish.adopt,
        deployment=wish.deployment,
    )
    plan = make_plan(compiled.resolution, compiled.files, compiled.survey, order)
    notices = (*compiled.loaded.notices, *lab.told(), *plan.notices)
    whole = replace(plan, notices=notices, asked=_asked(request, adopt=wish.adopt))
    return Planned(compiled, whole, compiled.files(plan.generation))


def _asked(request: Request, *, adopt: bool) -> Asked:
    templates = request.templates
    return Asked(
        inventory=str(request.inventory.absolute()),
        templates=str(templates.absolute()) if templates else "",
        skip_unreachable=request.skip_unreachable,
        promote=request.promote,
        adopt=adopt,
    )
