"""The use case `plan`: compile, and compare with the hosts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rlxdeploy.app.circumstances import order_for
from rlxdeploy.app.compile import Compiled, Request, compile_job
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import Say
from rlxdeploy.app.scope import members_of
from rlxdeploy.edge.record import read_record
from rlxdeploy.errors import HostError
from rlxdeploy.model.files import RemoteFiles
from rlxdeploy.model.plan import Asked, Plan
from rlxdeploy.model.scope import ALL, Scope
from rlxdeploy.resolve.entries import entries


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with the files that it names."""

    compiled: Compiled
    plan: Plan
    files: RemoteFiles

    @property
    def failed(self) -> Mapping[str, HostError]:
        """The hosts that did not answer and are left out since so many may fail."""
        if not self.plan.asked.max_fail:
            return {}
        absent = {*self.plan.absent}
        survey, nodes = self.compiled.survey, entries(self.compiled.loaded)
        hosts = (node.host.name for node in nodes if node.name in absent)
        return {name: survey.error_of(name) for name in hosts}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants of a plan besides the inventory.

    *deployment* is the id to give where neither the record nor the hosts know one; *scope* tells
    which hosts are to change.
    """

    join_timeout: float | None = None
    adopt: bool = False
    deployment: str | None = None
    scope: Scope = ALL


def plan_job(request: Request, lab: Lab, say: Say, wish: Wish | None = None) -> Planned:
    """Return what apply would do now; changes nothing.

    Raises what `compile_job` raises, CompileError where another deployment holds a host, and what
    `limited` raises where not all hosts are meant.
    """
    wish = wish or Wish()
    compiled = compile_job(request, lab, say, with_secrets=True, scope=wish.scope)
    # Loaded while the hosts were asked, see `app.compile`.
    from rlxdeploy.plan.make import make_plan  # noqa: PLC0415 - as said above
    from rlxdeploy.plan.preflight import needless  # noqa: PLC0415
    from rlxdeploy.render.environment import stand_ins  # noqa: PLC0415
    from rlxdeploy.render.sources import sources_of  # noqa: PLC0415

    order = order_for(
        compiled.loaded,
        compiled.survey,
        join_timeout=wish.join_timeout,
        adopt=wish.adopt,
        deployment=wish.deployment,
    )
    order = replace(order, secret=compiled.inputs.digest_key or order.secret)
    plan = make_plan(compiled.resolution, compiled.files, compiled.survey, order)
    notices = (*compiled.loaded.notices, *lab.told(), *plan.notices)
    whole = replace(
        plan,
        notices=notices,
        asked=_asked(request, wish),
        secrets=stand_ins(compiled.inputs),
        sources=sources_of(compiled.inputs),
    )
    mine = _in_scope(whole, compiled, wish.scope)
    record = read_record(Path(compiled.loaded.path), compiled.loaded.job)
    tried = not needless(mine, compiled.resolution, compiled.survey, record)
    return Planned(compiled, replace(mine, preflight=tried), compiled.files(plan.generation))


def _in_scope(plan: Plan, compiled: Compiled, scope: Scope) -> Plan:
    if scope.is_all:
        return plan
    from rlxdeploy.plan.limit import limited  # noqa: PLC0415 - as in plan_job

    ranks = {row.rank: (row.host, row.node) for row in plan.ranks if row.managed}
    members = members_of(compiled.loaded, ranks, plan.hosts)
    return limited(plan, members, scope.choose(members))


def _asked(request: Request, wish: Wish) -> Asked:
    templates = request.templates
    return Asked(
        inventory=str(request.inventory.absolute()),
        templates=str(templates.absolute()) if templates else "",
        skip_unreachable=request.skip_unreachable,
        promote=request.promote,
        adopt=wish.adopt,
        scope=wish.scope,
        max_fail=request.max_fail,
    )
