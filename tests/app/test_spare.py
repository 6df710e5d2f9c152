"""How a plan is carried out: which hosts `--max-fail` can spare, and how long they hold."""

from dataclasses import replace
from pathlib import Path

import pytest

from rlxdeploy.app.apply import manner
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.run import Run
from rlxdeploy.app.say import nobody
from rlxdeploy.model.plan import Asked, Plan
from rlxdeploy.plan.make import make_plan
from rlxdeploy.plan.others import plan_destroy, plan_stop
from tests.plan.world import JOB, ORDER, World, bare, settled

WORLD = World()
FIRST = make_plan(WORLD.resolution, WORLD.render, bare(WORLD), ORDER)
UP = settled(FIRST, WORLD.render(1), bare(WORLD))
README = replace(WORLD, readme="new\n")
SITES = {name: WORLD.site(name) for name in WORLD.layout}
LEFT = replace(ORDER, left={"b": WORLD.site("b")})

CASES = {
    "none of a group that starts": ("apply", FIRST, set()),
    "any of a group that runs on": (
        "apply",
        make_plan(README.resolution, README.render, UP, ORDER),
        {"a", "b"},
    ),
    "none that the group is left by": (
        "apply",
        make_plan(
            World(layout={"a": (0, 1)}).resolution, World(layout={"a": (0, 1)}).render, UP, LEFT
        ),
        set(),
    ),
    "any to be stopped": ("stop", plan_stop(JOB, SITES, UP, ORDER), {"a", "b"}),
    "any to be cleared": ("destroy", plan_destroy(JOB, SITES, UP, ORDER), {"a", "b"}),
}


@pytest.mark.parametrize(("verb", "plan", "spared"), CASES.values(), ids=CASES.keys())
def test_only_hosts_are_spared_that_the_others_do_not_need(
    tmp_path: Path, verb: str, plan: Plan, spared: set[str]
) -> None:
    """A group starts as a whole; each host can be stopped or cleared by itself."""
    run = Run.begin(verb, plan, tmp_path / "inventory.toml", "ann")
    allowed = replace(plan, asked=Asked(max_fail=1))
    with Lab() as lab:
        how = manner(verb, allowed, lab, nobody, run)
        strict = manner(verb, plan, lab, nobody, run)

    assert {name for name in plan.hosts if how.goes_without({name})} == spared
    assert not how.goes_without({"a", "b"})
    assert not any(strict.goes_without({name}) for name in plan.hosts)


@pytest.mark.parametrize("allowed", [20.0, 86_400.0])
def test_a_host_holds_until_the_join_has_ended(tmp_path: Path, allowed: float) -> None:
    """However long its ranks may take, nobody else gets the lock meanwhile."""
    patient = replace(FIRST, join_timeout=allowed)
    run = Run.begin("apply", patient, tmp_path / "inventory.toml", "ann")
    with Lab() as lab:
        assert manner("apply", patient, lab, nobody, run).terms().hold_s > allowed
