"""Plans for some of the hosts."""

from dataclasses import replace

import pytest

from rlxdeploy.errors import CompileError, Unreachable, UsageError
from rlxdeploy.model.plan import Plan
from rlxdeploy.model.scope import Member
from rlxdeploy.model.survey import JobSeen, Survey
from rlxdeploy.plan.limit import limited
from rlxdeploy.plan.make import make_plan
from rlxdeploy.plan.order import Order
from tests.plan.world import ORDER, World, bare, settled

WORLD = World()
MEMBERS = tuple(
    Member(host, rank, frozenset({host})) for host, ranks in WORLD.layout.items() for rank in ranks
)
ON_A, ON_B = MEMBERS[:2], MEMBERS[2:]


def plan_for(world: World, survey: Survey, order: Order = ORDER) -> Plan:
    return make_plan(world.resolution, world.render, survey, order)


def applied() -> Survey:
    return settled(plan_for(WORLD, bare(WORLD)), WORLD.render(1), bare(WORLD))


def test_others_are_left_as_they_are_and_named() -> None:
    """A file that no rank reads can go to one host now, and to the others later."""
    whole = plan_for(replace(WORLD, readme="new\n"), applied())
    plan = limited(whole, MEMBERS, ON_A)

    assert plan.hosts["a"] == whole.hosts["a"]
    assert plan.hosts["b"].empty
    assert plan.hosts.keys() == whole.hosts.keys(), "the record has to know them all"
    assert [one.message for one in plan.notices] == ["b is left as it is (1 file to change)"]


def with_b_silent() -> Survey:
    """Return what is known where b does not answer: what it is, and that it has ranks 2 and 3."""
    survey = applied()
    facts = survey.hosts["b"]
    told = JobSeen(deployed=facts.job.deployed, current=facts.job.current)
    hosts = {**survey.hosts, "b": replace(facts, job=told)}
    return replace(survey, hosts=hosts, failed={"b": "no route to host"}, recalled=("b",))


def test_a_silent_host_that_is_not_meant_is_left_alone() -> None:
    """What is known of it settles PEERS and WORLD; nothing is planned for it, and it is named."""
    newer = replace(WORLD, readme="new\n")
    plan = limited(plan_for(newer, with_b_silent()), MEMBERS, ON_A)

    assert plan.hosts["a"] == plan_for(newer, applied()).hosts["a"]
    assert (plan.hosts["b"].empty, plan.unasked) == (True, ("b",))
    assert {row.action for row in plan.ranks} == {"keep"}
    assert "b did not answer (no route to host)" in plan.notices[0].message


def test_a_silent_host_has_to_answer_where_the_group_starts_anew() -> None:
    """Whoever is meant: all ranks change, its own too, so that it counts as not reached."""
    with pytest.RaisesGroup(Unreachable) as refused:
        plan_for(replace(WORLD, notes={0: "new"}), with_b_silent())

    assert "the whole group starts anew" in str(refused.value.exceptions[0])


RESTARTS = {
    "the first start": (WORLD, bare(WORLD), "ranks 2\N{EN DASH}3 on b have to change"),
    "another input": (replace(WORLD, notes={0: "new"}), applied(), "rank 0's inputs changed"),
    "a new rank": (
        World(layout={"a": (0, 1), "b": (2, 3, 4)}),
        applied(),
        "ranks 2\N{EN DASH}4 on b have to change with the others",
    ),
}


@pytest.mark.parametrize(("world", "survey", "said"), RESTARTS.values(), ids=RESTARTS.keys())
def test_a_group_is_not_torn(world: World, survey: Survey, said: str) -> None:
    """A rank whose PEERS, WORLD or RLX_PLAN change cannot be left out."""
    with pytest.raises(CompileError) as refused:
        limited(plan_for(world, survey), MEMBERS, ON_A)

    assert said in str(refused.value)


def test_a_host_that_left_is_stopped_with_the_others() -> None:
    """Its ranks would go on with the group that was."""
    order = replace(ORDER, left={"b": WORLD.site("b")})
    plan = plan_for(World(layout={"a": (0, 1)}), applied(), order)
    members = (*ON_A, Member("b", None, frozenset({"b"})))
    with pytest.raises(CompileError, match="on b have to change with the others"):
        limited(plan, members, ON_A)

    assert limited(plan, members, members) == plan


def test_a_part_of_a_host_is_no_host() -> None:
    """What changes a host changes it for all of its ranks."""
    plan = plan_for(replace(WORLD, readme="new\n"), applied())
    with pytest.raises(UsageError, match="leave out rank 1 on a, and a host changes as a whole"):
        limited(plan, MEMBERS, MEMBERS[:1])

    assert limited(plan_for(WORLD, applied()), MEMBERS, MEMBERS[:1]).empty
