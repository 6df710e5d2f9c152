"""A plan as a person reads it."""

from dataclasses import replace

from rlxdeploy.model.plan import Plan
from rlxdeploy.plan.make import make_plan
from rlxdeploy.plan.text import Tone, plan_lines, reason_lines, summary
from tests.plan.world import ORDER, World, bare, settled

EN_DASH = "\N{EN DASH}"


def first(world: World) -> Plan:
    return make_plan(world.resolution, world.render, bare(world), ORDER)


def changed() -> Plan:
    up = settled(first(World()), World().render(1), bare(World()))
    world = replace(World(), notes={2: "new"})
    old = World().render(1).hosts["b"].released[0]
    order = replace(ORDER, known={old.digest: old.content})
    return make_plan(world.resolution, world.render, up, order)


def test_a_plan_can_say_why_everything_is_as_it_is() -> None:
    """Each rank has the reasons of its values below it."""
    lines = [line.text for line in reason_lines(first(World()))]

    assert lines[lines.index("rank 2") + 1] == "  rank  file order"
    assert [line for line in lines if line.startswith("rank")] == [f"rank {n}" for n in range(4)]


def test_a_plan_says_who_is_where_and_what_becomes_of_it() -> None:
    """The first line counts the group, the table places it, the last line sums up."""
    lines = [line.text for line in plan_lines(first(World()))]

    assert lines[0] == "t: 4 ranks in a mesh on 2 hosts"
    assert "  0     a     a     cpu     10.0.0.1:29500  process  start" in lines
    assert f"2 hosts to change: 8 files created, ranks 0{EN_DASH}3 to start." in lines
    assert any(
        line.startswith("  + /home/ann/.local/share/rlx/t/current/env/0.env") for line in lines
    )


def test_a_plan_shows_the_layers_where_there_are_any() -> None:
    """Each rank's own, in a column of their own; without them nobody reads of layers."""
    plan = first(World())
    ranks = tuple(replace(row, layers=f"{row.rank}:{row.rank + 1}") for row in plan.ranks[:3])
    shared = replace(plan, ranks=(*ranks, plan.ranks[3]))

    lines = [line.text for line in plan_lines(shared)]

    assert "  rank  node  host  device  address         layers  launch   action" in lines
    assert "  2     b     b     cpu     10.0.0.1:29502  2:3     process  start" in lines
    assert "  3     b     b     cpu     10.0.0.1:29503  -       process  start" in lines
    assert not any("layers" in line.text for line in plan_lines(plan))


def test_a_change_shows_its_diff_in_the_tones_of_a_diff() -> None:
    """Lines that go and lines that come are told apart; without the diff only the file is named."""
    whole = list(plan_lines(changed()))
    short = list(plan_lines(changed(), diffs=()))

    assert ('      +NOTE="new"', Tone.CREATED) in [(line.text, line.tone) for line in whole]
    assert ('      -NOTE=""', Tone.REMOVED) in [(line.text, line.tone) for line in whole]
    assert not any("NOTE" in line.text for line in short)
    assert any("rank 2's inputs changed" in line.text for line in short)


def test_a_plan_promises_no_joining_that_nobody_will_prove() -> None:
    """Of a program without words only the start will be seen, and the plan says so beforehand."""
    quiet = "  the ranks will be started, joining not proven: ready is exec"
    plan = first(World())
    shown = [line.text for line in plan_lines(plan)]
    exec_shown = [line.text for line in plan_lines(replace(plan, join="exec"))]

    assert quiet in exec_shown
    assert quiet not in shown
    assert any(line.startswith("  once all ranks have started: ") for line in exec_shown)
    assert not any("have joined" in line for line in exec_shown)
    assert any(line.startswith("  once all ranks have joined: ") for line in shown)


def test_an_empty_plan_says_so() -> None:
    """Nothing to change is a sentence, not an empty page."""
    up = settled(first(World()), World().render(1), bare(World()))
    plan = make_plan(World().resolution, World().render, up, ORDER)

    assert summary(plan) == "Nothing to change."
    assert [line.text for line in plan_lines(plan)][-1] == "Nothing to change."
