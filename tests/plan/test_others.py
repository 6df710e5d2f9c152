"""Stop, restart and destroy as plans."""

from dataclasses import replace

import pytest

from rlxdeploy.errors import CompileError
from rlxdeploy.model.step import RemoveJob, StartRanks, StopRanks, StoreFile
from rlxdeploy.model.survey import FileSeen, Survey
from rlxdeploy.plan.make import make_plan
from rlxdeploy.plan.others import plan_destroy, plan_restart, plan_stop
from rlxdeploy.plan.rollback import plan_rollback
from tests.plan.world import JOB, ORDER, World, bare, settled, tree

WORLD = World()
BARE = bare(WORLD)
FIRST = make_plan(WORLD.resolution, WORLD.render, BARE, ORDER)
UP = settled(FIRST, WORLD.render(1), BARE)
STOPPED = replace(
    UP,
    hosts={
        name: replace(facts, job=replace(facts.job, ranks=())) for name, facts in UP.hosts.items()
    },
)
SITES = {name: WORLD.site(name) for name in WORLD.layout}


def test_a_stop_stops_what_runs_and_nothing_else() -> None:
    """Files stay; where nothing runs the plan is empty."""
    plan = plan_stop(JOB, SITES, UP, ORDER)

    assert [part.go for part in plan.hosts.values()] == [(StopRanks((0, 1)),), (StopRanks((2, 3)),)]
    assert [row.action for row in plan.ranks] == ["stop"] * 4
    assert plan_stop(JOB, SITES, BARE, ORDER).empty


def test_a_destroy_leaves_nothing_and_is_empty_where_nothing_is() -> None:
    """Every rank is stopped for good and the job removed."""
    plan = plan_destroy(JOB, SITES, UP, ORDER)

    assert plan.hosts["a"].go == (StopRanks((0, 1), disable=True), RemoveJob())
    assert [row.action for row in plan.ranks] == ["stop"] * 4
    assert [row.action for row in plan_destroy(JOB, SITES, STOPPED, ORDER).ranks] == ["remove"] * 4
    assert plan_destroy(JOB, SITES, BARE, ORDER).empty


def test_what_only_lies_in_the_store_is_no_job() -> None:
    """A destroy leaves it, and a first apply need not bring it."""
    archive = WORLD.render(1).hosts["a"].stored[0]
    path = tree("process").stored(archive.digest)
    stocked = replace(BARE.hosts["a"].job, files={path: FileSeen(archive.digest, 0o644, "root", 1)})
    survey = replace(BARE, hosts={**BARE.hosts, "a": replace(BARE.hosts["a"], job=stocked)})
    stages = {
        name: [step for step in part.stage if isinstance(step, StoreFile)]
        for name, part in make_plan(WORLD.resolution, WORLD.render, survey, ORDER).hosts.items()
    }

    assert plan_destroy(JOB, SITES, survey, ORDER).empty
    assert stages == {"a": [], "b": [StoreFile(archive.digest, len(archive.content))]}


def test_a_destroy_lists_all_that_goes_and_no_file_of_another_job() -> None:
    """A runtime that another job has there, too, stays in the store."""
    archive = tree("process").stored(WORLD.render(1).hosts["a"].stored[0].digest)
    job = replace(UP.hosts["a"].job, shared=(archive.rpartition("/")[2],))
    shared = {**UP.hosts, "a": replace(UP.hosts["a"], job=job)}

    def removed(survey: Survey) -> dict[str, set[str]]:
        plan = plan_destroy(JOB, SITES, survey, ORDER)
        return {name: {one.path for one in part.changes} for name, part in plan.hosts.items()}

    assert all(archive in paths for paths in removed(UP).values())
    others = removed(replace(UP, hosts=shared))
    assert archive not in others["a"]
    assert others["b"] == removed(UP)["b"]


def test_a_restart_stops_and_starts_the_whole_group() -> None:
    """The deployed release runs again, in the generation it has."""
    plan = plan_restart(WORLD.resolution, WORLD.render(1), UP, ORDER)
    stop, start = plan.hosts["a"].go

    assert stop == StopRanks((0, 1))
    assert isinstance(start, StartRanks)
    assert (start.ranks, start.release) == ((0, 1), FIRST.release)
    assert start.supervisor[2:] == ("/usr/bin/python3", "-m", "rlxdeploy.runtime.supervisor")
    assert [row.action for row in plan.ranks] == ["restart"] * 4


def test_a_restart_of_nothing_says_to_apply() -> None:
    """What is not deployed cannot be restarted."""
    with pytest.raises(CompileError, match="apply first"):
        plan_restart(WORLD.resolution, WORLD.render(1), BARE, ORDER)


@pytest.mark.parametrize(("survey", "action"), [(UP, "restart"), (STOPPED, "start")])
def test_a_rollback_says_which_ranks_it_starts_anew(survey: Survey, action: str) -> None:
    """Where a rank does not run, none is stopped."""
    hosts = {
        name: replace(facts, job=replace(facts.job, kept={"r0": facts.job.deployed}))
        for name, facts in survey.hosts.items()
        if facts.job.deployed
    }
    plan = plan_rollback(SITES, replace(survey, hosts=hosts), ORDER, "r0")

    assert [row.action for row in plan.ranks] == [action] * 4
    assert (StopRanks((0, 1)) in plan.hosts["a"].go) == (action == "restart")


def test_what_is_started_again_is_as_it_was_applied() -> None:
    """How ranks say that they are up, and when they start, is the release's and no later word's."""
    later = replace(ORDER, ready="exec", boot=False)
    hosts = {
        name: replace(facts, job=replace(facts.job, kept={"r0": facts.job.deployed}))
        for name, facts in UP.hosts.items()
        if facts.job.deployed
    }
    back = plan_rollback(SITES, replace(UP, hosts=hosts), later, "r0")
    again = plan_restart(WORLD.resolution, WORLD.render(1), UP, later)

    for plan in (back, again):
        (start,) = (one for one in plan.hosts["a"].go if isinstance(one, StartRanks))
        assert (plan.join, start.boot) == ("notify", True)
    assert back.hosts["a"].back
    assert back.hosts["a"].back.notify


def test_none_of_them_touches_another_deployment() -> None:
    """The same refusal as for an apply, lifted by the same flag."""
    stranger = replace(ORDER, deployment="d2")
    with pytest.raises(CompileError, match="--adopt"):
        plan_stop(JOB, SITES, UP, stranger)
    with pytest.raises(CompileError, match="--adopt"):
        plan_destroy(JOB, SITES, UP, stranger)

    assert not plan_destroy(JOB, SITES, UP, replace(stranger, adopt=True)).empty
