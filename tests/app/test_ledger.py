"""The record beside the inventory tells the truth, whichever of two applies ends last."""

from pathlib import Path

import pytest

from rlxdeploy.app.ledger import Ledger
from rlxdeploy.app.run import Run
from rlxdeploy.edge.record import digest_key, read_record, write_record
from rlxdeploy.model.record import HostRecord, Record
from rlxdeploy.plan.make import make_plan
from tests.plan.world import JOB, ORDER, World, bare, tree

WORLD = World()
PLAN = make_plan(WORLD.resolution, WORLD.render, bare(WORLD), ORDER)
GENERATIONS = {"r0": 4, "r1": 7, "r2": 6}

# How a run of PLAN may end on every host.
STAYED, WENT_BACK, NOT_TOLD = "confirmed", "reverted", "staged"


def record(release: str, *hosts: str, generation: int = 0) -> Record:
    where = tree("process")
    told = tuple(HostRecord(WORLD.site(name).host, where, "process", (0,)) for name in hosts)
    return Record("d1", JOB, release, generation or GENERATIONS[release], told, ())


@pytest.fixture(params=[True, False], ids=["deployed before", "nothing before"])
def before(tmp_path: Path, request: pytest.FixtureRequest) -> Record | None:
    """Give what is written beside the inventory before anybody does anything."""
    one = record("r0", "a", "b") if request.param else None
    if one is not None:
        write_record(tmp_path / "inventory.toml", one)
    return one


def begun(folder: Path, release: str, leaving: str = "") -> Ledger:
    """Return the ledger of a run that is to bring *release*, and clears *leaving*."""

    def becomes(seen: Record | None) -> Record:
        highest = max(GENERATIONS[release], seen.generation if seen else 0)
        return record(release, "a", "b", generation=highest)

    run = Run.begin("apply", PLAN, folder / "inventory.toml", "ann")
    return Ledger(run, becomes, {release: b"x"}, frozenset(filter(None, [leaving])), {})


def come_to(one: Ledger, how: str) -> None:
    for name in PLAN.hosts:
        one.run.heard(name, how)


def now(folder: Path) -> Record | None:
    return read_record(folder / "inventory.toml", JOB)


def told(seen: Record | None) -> tuple[str, int] | None:
    return (seen.release, seen.generation) if seen else None


def test_a_host_may_have_the_job_before_it_is_told(tmp_path: Path, before: Record | None) -> None:
    """What is to be is written while nobody has been told GO, and cleared hosts go at the end."""
    del before
    one = begun(tmp_path, "r1", leaving="b")
    with one:
        seen = now(tmp_path)
        assert seen is not None
        assert [host.host.name for host in seen.hosts] == ["a", "b"]
        come_to(one, STAYED)
    left = now(tmp_path)
    assert left is not None
    assert [host.host.name for host in left.hosts] == ["a"]


@pytest.mark.parametrize("how", [WENT_BACK, NOT_TOLD])
@pytest.mark.parametrize("first", ["r1", "r2"])
def test_who_changes_nothing_leaves_what_was(
    tmp_path: Path, before: Record | None, first: str, how: str
) -> None:
    """An apply that went back leaves the record of before, to which the next one goes back too.

    Of a deployment that goes on no number comes twice, whichever of the two was the higher.
    """
    highest = GENERATIONS["r0"]
    for release in (first, "r2" if first == "r1" else "r1"):
        one = begun(tmp_path, release)
        with one:
            come_to(one, how)
        highest = max(highest, GENERATIONS[release])
        assert told(now(tmp_path)) == (("r0", highest) if before else None)


@pytest.mark.parametrize("first_ends_first", [True, False])
@pytest.mark.parametrize(("first", "second"), [("r1", "r2"), ("r2", "r1"), ("r1", "r1")])
def test_two_runs_at_once_on_hosts_apart_undo_nothing_of_each_other(
    tmp_path: Path, before: Record | None, first: str, second: str, *, first_ends_first: bool
) -> None:
    """Where one changes hosts and the other none, what stands is the one's, in either order."""
    del before  # the first round finds it, the second what that has left
    for goes in (0, 1):
        runs = [begun(tmp_path, first), begun(tmp_path, second)]
        for one in runs:
            one.__enter__()
        for number in (0, 1) if first_ends_first else (1, 0):
            come_to(runs[number], STAYED if number == goes else WENT_BACK)
            runs[number].__exit__(None, None, None)
        seen = now(tmp_path)
        assert seen is not None
        assert seen.release == (first, second)[goes]
        assert seen.generation == max(GENERATIONS[first], GENERATIONS[second])


def test_a_first_apply_that_comes_to_nothing_leaves_nothing(tmp_path: Path) -> None:
    """Nor the key under which its secrets were digested."""
    digest_key(tmp_path / "inventory.toml", JOB)
    one = begun(tmp_path, "r1")
    with one:
        come_to(one, WENT_BACK)
    left = {path.name for path in (tmp_path / ".rlxdeploy").iterdir()}
    assert left == {".gitignore", f"{JOB}.journal"}
