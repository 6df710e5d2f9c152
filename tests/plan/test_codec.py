"""A plan saved, read back, and compared with what the hosts call for now."""

import json
from dataclasses import replace

import pytest

from rlxdeploy.errors import InventoryError
from rlxdeploy.model.plan import Plan
from rlxdeploy.model.stray import How, Stray
from rlxdeploy.plan.codec import dump_plan, load_plan
from rlxdeploy.plan.make import make_plan
from rlxdeploy.plan.moved import moved
from rlxdeploy.plan.order import Order
from rlxdeploy.plan.others import plan_destroy
from tests.plan.world import JOB, ORDER, World, bare, settled, surveyed


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


DIFFERENCES: dict[str, tuple[World, Order, str]] = {
    "a file of the release": (
        replace(World(launch="systemd"), notes={0: "new"}),
        ORDER,
        "a: stage release {release} (3 files): it differs in env/0.env",
    ),
    "a unit": (
        World(launch="systemd", unit="[Unit] newer"),
        ORDER,
        "a: install /etc/systemd/system/rlx-t@.service: it differs in digest, size",
    ),
    "a field of the mark": (
        World(launch="systemd"),
        replace(ORDER, boot=False),
        "a: write deployment.json: boot: True when it was saved, False now",
    ),
}


@pytest.mark.parametrize(("world", "order", "line"), DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_what_has_moved_is_named_by_its_field_or_file(
    world: World, order: Order, line: str
) -> None:
    """Of a step that both plans have, what differs is told, and what is told above is not."""
    saved = first(World(launch="systemd"))
    fresh = make_plan(world.resolution, world.render, bare(world), order)

    lines = moved(saved, fresh)

    assert line.format(release=fresh.release) in lines
    assert not any("called for" in one for one in lines)
    assert sum("release: " in one for one in lines) == (saved.release != fresh.release)


def test_a_fact_that_has_moved_is_named_with_its_rank() -> None:
    """Another device, another address: what was saved and what the host says now."""
    world = World()
    saved, (one, *others) = first(world), world.resolution.seats
    assert one.peer is not None
    other = replace(one, devices=("cuda:0",), peer=replace(one.peer, address="10.0.0.9"))
    resolution = replace(world.resolution, seats=(other, *others))
    lines = moved(saved, make_plan(resolution, world.render, bare(world), ORDER))

    assert lines == (
        "rank 0: device: cpu when it was saved, cuda:0 now",
        "rank 0: address: 10.0.0.1:29500 when it was saved, 10.0.0.9:29500 now",
    )


def test_a_plan_knows_what_was_done_by_hand_to_files_that_it_replaces() -> None:
    """The steps are the same; what they replace is not what the saved plan has shown."""
    world = World(launch="systemd")
    up = settled(first(world), world.render(1), bare(world))
    newer = replace(world, unit="[Unit] newer\n")
    unit = "/etc/systemd/system/rlx-t@.service"
    job = up.hosts["a"].job
    edited = {**job.files, unit: replace(job.files[unit], digest="0" * 64)}
    stray = Stray(unit, How.CHANGED)
    touched, told = replace(job, files=edited), replace(job, files=edited, strays=(stray,))
    saved, seen, noted = (
        make_plan(
            newer.resolution, newer.render, surveyed({"a": one, "b": up.hosts["b"].job}), ORDER
        )
        for one in (job, touched, told)
    )

    assert moved(saved, seen) == (f"a: {unit} is not as it was when the plan was saved",)
    assert f"since then a: {unit} has been changed; apply puts it back" in moved(saved, noted)
    assert any(line.startswith("no longer so: a:") for line in moved(noted, saved))


SOURCES: dict[str, tuple[dict[str, str], dict[str, str], tuple[str, ...]]] = {
    "a key that has changed": ({"k": "1", "l": "1"}, {"k": "2", "l": "1"}, ("k has changed",)),
    "one more and one less": ({"k": "1"}, {"l": "1"}, ("k is gone", "l is new")),
    "a plan that was saved before plans told them": ({}, {"k": "1"}, ()),
}


@pytest.mark.parametrize(("was", "now", "told"), SOURCES.values(), ids=SOURCES.keys())
def test_what_has_changed_on_the_controller_is_named_first(
    was: dict[str, str], now: dict[str, str], told: tuple[str, ...]
) -> None:
    """Only where the hosts are meant otherwise: what changes nothing on them is no difference."""
    world = World(launch="systemd")
    saved, fresh = (replace(first(world), sources=one) for one in (was, now))
    newer = replace(world, notes={0: "new"})
    other = make_plan(newer.resolution, newer.render, bare(newer), ORDER)

    assert moved(saved, fresh) == ()
    lines = moved(saved, replace(other, sources=now))
    assert lines[: len(told)] == tuple(f"{one} since the plan was saved" for one in told)
    assert lines[len(told)].startswith("release: ")


def test_of_many_changed_keys_the_first_are_named() -> None:
    """An inventory that was written anew tells how many more there are."""
    saved = replace(first(World()), sources={f"k{n:02}": "1" for n in range(20)})
    fresh = replace(saved, release="other", sources={f"k{n:02}": "2" for n in range(20)})

    lines = moved(saved, fresh)

    assert lines[11:13] == ("k11 has changed since the plan was saved", "and 8 more keys or files")
