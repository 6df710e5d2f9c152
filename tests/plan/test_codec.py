"""A plan saved, read back, and compared with what the hosts call for now."""

import json
from dataclasses import replace

import pytest

from rlxdeploy.errors import InventoryError
from rlxdeploy.model.plan import Plan
from rlxdeploy.plan.codec import dump_plan, load_plan, moved
from rlxdeploy.plan.make import make_plan
from rlxdeploy.plan.others import plan_destroy
from tests.plan.world import JOB, ORDER, World, bare, settled


def first(world: World) -> Plan:
    return make_plan(world.resolution, world.render, bare(world), ORDER)


PLANS = {
    "process": first(World()),
    "units": first(World(launch="systemd")),
    "destroy": plan_destroy(
        JOB,
        {"a": World().site("a")},
        settled(first(World()), World().render(1), bare(World())),
        ORDER,
    ),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_a_saved_plan_reads_back_with_the_same_steps(plan: Plan) -> None:
    """Nothing but the diffs is lost, and saving again gives the same bytes."""
    text = dump_plan(plan)
    again = load_plan(text, "plan.json")

    assert moved(plan, again) == ()
    assert [part.go for part in again.hosts.values()] == [part.go for part in plan.hosts.values()]
    assert dump_plan(again) == text
    assert next(iter(json.loads(text))) == "format_version"


def test_a_saved_plan_holds_no_content() -> None:
    """Files are source, digest and size; what is in them is not there."""
    text = dump_plan(first(replace(World(), notes={0: "a note"}, readme="a readme")))

    assert "a note" not in text
    assert "a readme" not in text
    assert "rank.env.j2" in text


BROKEN = {
    "no JSON": ("{", "no JSON"),
    "no version": ("{}", "no format_version"),
    "another version": ('{"format_version": 9}', "plan format 9"),
    "half": ('{"format_version": 1, "job": "t"}', "not a whole plan"),
}


@pytest.mark.parametrize(("text", "named"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_plan_is_refused(text: str, named: str) -> None:
    """The message names the file and what is wrong with it."""
    with pytest.raises(InventoryError, match=named) as refused:
        load_plan(text, "plan.json")

    assert "plan.json" in str(refused.value)


def test_a_plan_knows_what_has_moved() -> None:
    """A host that was changed since is named with the steps that differ; time alone is nothing."""
    saved = first(World())
    later = replace(ORDER, now=ORDER.now + 60, owner="bob")
    same = make_plan(World().resolution, World().render, bare(World()), later)
    up = settled(saved, World().render(1), bare(World()))
    other = make_plan(World().resolution, World().render, up, ORDER)

    assert moved(saved, same) == ()
    assert any(line.startswith("a: no longer called for: stage") for line in moved(saved, other))
