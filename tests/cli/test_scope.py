"""`--limit` and `--exclude` through the real command, on a group that only readers share."""

import pytest

from tests.cli.desk import Desk

MEANT = {
    "a rank": (("status", "--limit", "rank:1"), [1]),
    "its host": (("status", "--limit", "local"), [0, 1]),
    "all but a rank": (("status", "--exclude", "rank:0"), [1]),
    "the node": (("status", "--limit", "local", "--exclude", "rank:1"), [0]),
    "the log of a rank": (("logs", "--limit", "rank:1", "-n", "1"), [1]),
}


@pytest.mark.parametrize(("arguments", "ranks"), MEANT.values(), ids=MEANT.keys())
def test_only_those_are_shown_that_are_meant(
    group: Desk, arguments: tuple[str, ...], ranks: list[int]
) -> None:
    """One rank of two on a host can be looked at alone."""
    document = group.good(*arguments, "--json").document
    shown = document.get("ranks") or document["lines"]

    assert [one["rank"] for one in shown] == ranks


def test_only_those_are_probed_that_are_meant(group: Desk) -> None:
    """The other machine is not even looked for."""
    one = group.pair(node='[[node]]\nssh = "nowhere.invalid"\n', name="two.toml")
    document = group.good("probe", one, "--exclude", "nowhere.*", "--json").document
    one.unlink()

    assert document["hosts"].keys() == {"local"}
    assert document["failed"] == {}


def test_a_part_of_a_group_is_summed_up_as_one(group: Desk) -> None:
    """One of two that has joined is all of those that were asked for."""
    shown = group.good("status", "--limit", "rank:1").out

    assert "demo: 1 of these 1 ranks joined" in shown


REFUSED = {
    "nobody of that name": (("status", "--limit", "zzz"), "there are hosts local; ranks 0-1"),
    "no such rank": (("stop", "--limit", "rank:9"), "'rank:9' names nobody"),
    "nobody to leave out": (("plan", "--exclude", "zzz"), "--exclude: 'zzz' names nobody"),
    "nobody failed": (("apply", "--limit", "@failed", "--yes"), "no host failed in the last run"),
    "no term": (("destroy", "--limit", "@all", "--yes"), "'@all' is none of a host"),
    "a part of a host": (("destroy", "--limit", "rank:0", "--yes"), "a host changes as a whole"),
    "a rank without a log": (("logs", "--rank", "9"), "rank 9: not deployed; there are ranks 0"),
    "times that no log has": (("logs", "--since", "today"), "log without times"),
}


@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_what_means_nobody_is_refused(group: Desk, arguments: tuple[str, ...], said: str) -> None:
    """It is a bad command line, says what there is, and nothing is changed."""
    before = group.files()
    done = group.run(*arguments)

    assert (done.code, done.out) == (64, "")
    assert said in done.err
    assert group.files() == before


def test_a_saved_plan_takes_no_wishes(group: Desk) -> None:
    """What changes a plan belongs to the command that made it."""
    plan = group.lab / "saved.json"
    group.good("plan", "--out", plan)
    refused = group.run("apply", plan, "--limit", "local", "--yes")
    plan.unlink()

    assert refused.code == 64
    assert "a saved plan is carried out as it was saved" in refused.err
