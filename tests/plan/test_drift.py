"""What plans say, and do, about hosts that are not as the last apply left them."""

from dataclasses import replace

import pytest

from rlxdeploy.model.plan import Plan
from rlxdeploy.model.step import StageRelease, StartRanks
from rlxdeploy.model.stray import How, Stray
from rlxdeploy.model.survey import FileSeen, JobSeen, RankSeen, Survey
from rlxdeploy.plan.make import make_plan
from rlxdeploy.plan.others import plan_destroy
from rlxdeploy.plan.text import plan_lines
from tests.plan.world import JOB, ORDER, World, bare, settled, tree, with_rank

WORLD = World(launch="systemd")
DROP_IN = f"{tree('systemd').units}/rlx-{JOB}@.service.d/mine.conf"


def plan_for(survey: Survey) -> Plan:
    return make_plan(WORLD.resolution, WORLD.render, survey, ORDER)


def applied() -> Survey:
    before = bare(WORLD)
    return settled(plan_for(before), WORLD.render(1), before)


def with_job(survey: Survey, host: str, **changes: object) -> Survey:
    facts = survey.hosts[host]
    job: JobSeen = replace(facts.job, **changes)  # type: ignore[arg-type]  # as the caller says
    return replace(survey, hosts={**survey.hosts, host: replace(facts, job=job)})


def with_drop_in(survey: Survey) -> Survey:
    files = {**survey.hosts["a"].job.files, DROP_IN: FileSeen("x", 0o644, "root", 5)}
    return with_job(survey, "a", files=files, strays=(Stray(DROP_IN, How.DROP_IN),))


def test_hosts_as_the_last_apply_left_them_have_no_drift() -> None:
    """The plan does not speak of it."""
    plan = plan_for(applied())

    assert plan.drift == ()
    assert not any("drift" in line.text for line in plan_lines(plan))


@pytest.mark.parametrize("how", How)
def test_drift_is_named_with_host_path_and_what_becomes_of_it(how: How) -> None:
    """There are words for every kind."""
    (told,) = plan_for(with_job(applied(), "b", strays=(Stray("/x", how),))).drift

    assert (told.host, told.path) == ("b", "/x")
    assert str(told).startswith(f"b: /x {told.what}; ")
    assert told.then


def test_a_person_s_drop_in_is_left_alone_and_said() -> None:
    """It is no change of ours, neither for an apply nor for a destroy."""
    survey = with_drop_in(applied())
    plan = plan_for(survey)
    sites = {name: WORLD.site(name) for name in WORLD.layout}
    destroyed = plan_destroy(JOB, sites, survey, ORDER)

    assert plan.empty
    assert [str(one) for one in plan.drift] == [
        f"a: {DROP_IN} is not ours; it takes effect, and is left alone"
    ]
    assert DROP_IN not in str(destroyed.hosts["a"])
    assert [one.path for one in destroyed.drift] == [DROP_IN]


def test_a_drop_in_that_was_there_first_is_left_alone() -> None:
    """A first apply removes nothing, and a host with no more than that has nothing to destroy."""
    survey = with_drop_in(bare(WORLD))
    sites = {"a": WORLD.site("a")}

    assert DROP_IN not in str(plan_for(survey).hosts["a"])
    assert plan_destroy(JOB, sites, survey, ORDER).empty


ENABLED = {
    "disabled by hand": (True, False, "is no longer enabled at boot"),
    "enabled by hand": (False, True, "has been enabled at boot"),
}


@pytest.mark.parametrize(("boot", "enabled", "what"), ENABLED.values(), ids=ENABLED.keys())
def test_a_unit_that_starts_at_boot_otherwise_is_drift(
    *, boot: bool, enabled: bool, what: str
) -> None:
    """The plan names the unit and sets it right without a restart."""
    order = replace(ORDER, boot=boot)
    before = bare(WORLD)
    first = make_plan(WORLD.resolution, WORLD.render, before, order)
    survey = settled(first, WORLD.render(1), before)
    for rank in range(4):
        host = "a" if rank < 2 else "b"
        as_asked = RankSeen(rank, "active", ready=True, pid=1, enabled=boot)
        survey = with_rank(survey, host, as_asked)
    assert make_plan(WORLD.resolution, WORLD.render, survey, order).drift == ()
    survey = with_rank(survey, "b", RankSeen(2, "active", ready=True, pid=1, enabled=enabled))
    plan = make_plan(WORLD.resolution, WORLD.render, survey, order)

    assert [(one.host, one.path, one.what) for one in plan.drift] == [
        ("b", f"rlx-{JOB}@2.service", what)
    ]
    assert [type(step) for step in plan.hosts["b"].go] == [StartRanks]
    assert plan.hosts["a"].empty


def test_a_current_that_points_elsewhere_is_put_right() -> None:
    """The release is staged again, as the host may not have it any more."""
    stray = Stray(tree("systemd").current, How.SWITCHED)
    plan = plan_for(with_job(applied(), "a", current="other", strays=(stray,)))

    assert [type(step) for step in plan.hosts["a"].stage] == [StageRelease]
    assert plan.drift[0].what == "points at another release"
