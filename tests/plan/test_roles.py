"""Hosts without ranks: standbys that hold the files, and hosts whose ranks have gone elsewhere."""

from dataclasses import replace

import pytest

from rlxdeploy.model.plan import Plan
from rlxdeploy.model.step import (
    MarkDeployment,
    RemoveJob,
    StageRelease,
    StartRanks,
    StopRanks,
    StoreFile,
    SwitchRelease,
)
from rlxdeploy.model.survey import Survey
from rlxdeploy.plan.make import make_plan
from rlxdeploy.plan.order import Order
from tests.plan.world import ORDER, World, bare, settled

GROUP = World({"a": (0,), "b": (1,), "s": ()})
PROMOTED = World({"a": (0,), "s": (1,)})


def plan_for(world: World, survey: Survey, order: Order = ORDER, **merged: str) -> Plan:
    resolution = replace(world.resolution, merged=merged)
    return make_plan(resolution, world.render, survey, order)


def applied(world: World) -> Survey:
    before = bare(world)
    plan = plan_for(world, before)
    return settled(plan, world.render(plan.generation), before)


def test_a_standby_gets_the_release_and_starts_nothing() -> None:
    """Its host holds store and release, is marked with no rank, and a second plan is empty."""
    part = plan_for(GROUP, bare(GROUP)).hosts["s"]

    assert [type(step) for step in part.stage] == [StoreFile, StageRelease]
    assert [type(step) for step in part.go] == [SwitchRelease, MarkDeployment]
    assert [step.fields["ranks"] for step in part.go if isinstance(step, MarkDeployment)] == [[]]
    assert (part.actions, plan_for(GROUP, applied(GROUP)).empty) == ((), True)


def test_a_rank_moves_from_its_host_to_the_standby() -> None:
    """The old host stops it and then forgets it, the standby starts it, the group starts anew."""
    order = replace(ORDER, left={"b": GROUP.site("b")})

    plan = plan_for(PROMOTED, applied(GROUP), order)

    assert [row.host for row in plan.ranks] == ["a", "s"]
    assert [row.action for row in plan.ranks] == ["restart", "start"]
    assert plan.hosts["b"].go == (StopRanks((1,), disable=True),)
    assert plan.hosts["b"].confirm == (RemoveJob(),)
    starts = [one for one in plan.hosts["s"].go if isinstance(one, StartRanks)]
    assert [one.ranks for one in starts] == [(1,)]
    after = settled(plan, PROMOTED.render(plan.generation), applied(GROUP))
    assert plan_for(PROMOTED, after, order).empty


@pytest.mark.parametrize("merged", [{}, {"b": "a"}], ids=["another machine", "the same"])
def test_a_machine_under_another_name_is_not_cleared(merged: dict[str, str]) -> None:
    """A name that turns out to be one of the group's machines has not left it."""
    order = replace(ORDER, left={"b": GROUP.site("b")})

    plan = plan_for(PROMOTED, applied(GROUP), order, **merged)

    assert ("b" in plan.hosts) is not bool(merged)
