"""What a plan calls for, from hosts as values."""

from dataclasses import replace

import pytest

from rlxdeploy.errors import CompileError, Severity
from rlxdeploy.model.host import Host
from rlxdeploy.model.plan import Change, Plan
from rlxdeploy.model.step import (
    InstallFile,
    MarkDeployment,
    ReloadUnits,
    RemoveFile,
    RemoveJob,
    StageRelease,
    StartRanks,
    StopRanks,
    StoreFile,
    SwitchRelease,
)
from rlxdeploy.model.survey import FileSeen, JobSeen, RankSeen, Survey
from rlxdeploy.plan.make import make_plan
from rlxdeploy.plan.order import Order
from tests.plan.world import (
    ORDER,
    World,
    as_text,
    bare,
    digest,
    settled,
    surveyed,
    tree,
    with_rank,
)

EN_DASH = "\N{EN DASH}"


def plan_for(world: World, survey: Survey, order: Order = ORDER) -> Plan:
    return make_plan(world.resolution, world.render, survey, order)


def applied(world: World, survey: Survey | None = None, order: Order = ORDER) -> Survey:
    before = survey or bare(world)
    plan = plan_for(world, before, order)
    return settled(plan, world.render(plan.generation), before)


def kinds(plan: Plan, host: str) -> tuple[list[type], list[type]]:
    part = plan.hosts[host]
    return [type(step) for step in part.stage], [type(step) for step in part.go]


def test_the_first_plan_starts_the_group_in_generation_one() -> None:
    """Every file is created, every rank started, and no step stops anything."""
    plan = plan_for(World(), bare(World()))

    assert plan.generation == 1
    assert plan.why == (f"nothing is deployed yet; ranks 0{EN_DASH}3 start",)
    assert kinds(plan, "a") == (
        [StoreFile, StageRelease],
        [SwitchRelease, MarkDeployment, StartRanks],
    )
    assert {one.change for part in plan.hosts.values() for one in part.changes} == {Change.CREATED}
    assert [row.action for row in plan.ranks] == ["start"] * 4


@pytest.mark.parametrize("launch", ["process", "systemd"])
def test_a_second_plan_is_empty(launch: str) -> None:
    """What an apply has settled calls for nothing, whoever plans it and when."""
    world = World(launch=launch)
    order = replace(ORDER, owner="bob", controller="lap", now=ORDER.now + 5000)
    plan = plan_for(world, applied(world), order)

    assert plan.empty
    assert (plan.generation, plan.why) == (1, ())
    assert [row.action for row in plan.ranks] == ["keep"] * 4


def test_one_rank_s_inputs_restart_the_whole_group() -> None:
    """The plan names the rank at fault, and all four restart in the next generation."""
    world = replace(World(), notes={2: "new"})
    plan = plan_for(world, applied(World()))

    assert plan.why == (f"rank 2's inputs changed; ranks 0{EN_DASH}3 restart",)
    assert plan.generation == 2
    assert plan.release == world.render(2).release
    assert [row.action for row in plan.ranks] == ["restart"] * 4
    assert plan.hosts["a"].go[0] == StopRanks((0, 1))
    assert StartRanks in kinds(plan, "a")[1]
    assert plan.hosts["a"].actions[0].why == "every restart is one of the whole group"
    assert plan_for(world, applied(world, applied(World()))).empty


SEEN_BEFORE = {
    "by the record": (7, {}),
    "by a host that keeps it": (0, {"a": 7}),
    "by a host that left": (0, {"c": 7}),
}


@pytest.mark.parametrize(("record", "kept"), SEEN_BEFORE.values(), ids=SEEN_BEFORE.keys())
def test_a_generation_is_never_used_again(record: int, kept: dict[str, int]) -> None:
    """After a rollback the next restart counts on from the highest there ever was."""
    survey = applied(World())
    mark = survey.hosts["a"].job.deployed
    assert mark is not None
    hosts = {**survey.hosts, "c": replace(survey.hosts["b"], host=Host("c", "c"))}
    for name, generation in kept.items():
        job = replace(hosts[name].job, kept={"later": replace(mark, generation=generation)})
        hosts[name] = replace(hosts[name], job=job)
    order = replace(ORDER, generation=record)
    survey = replace(survey, hosts=hosts)

    assert plan_for(World(), survey, order).empty
    changed = plan_for(replace(World(), notes={2: "new"}), survey, order)
    assert changed.generation == 8


def test_a_file_that_no_rank_reads_restarts_nobody() -> None:
    """It goes to the hosts in a release of its own, in the same generation."""
    world = replace(World(), readme="read this\n")
    plan = plan_for(world, applied(World()))

    assert (plan.generation, plan.why) == (1, ())
    assert kinds(plan, "b") == ([StageRelease], [SwitchRelease, MarkDeployment])
    assert not plan.hosts["b"].actions
    assert "-read me\n+read this\n" in replace_known(world).hosts["a"].changes[0].diff


def replace_known(world: World) -> Plan:
    old = World().render(1).hosts["a"].released[-1]
    order = replace(ORDER, known={old.digest: old.content})
    return plan_for(world, applied(World()), order)


FALLEN = {
    "failed": (
        RankSeen(2, "failed", exit_status=3),
        f"rank 2 does not run (failed, exit 3); ranks 0{EN_DASH}3 restart",
    ),
    "stopped": (
        RankSeen(2, "inactive", exit_status=0),
        f"rank 2 does not run (inactive, exit 0); ranks 0{EN_DASH}1, 3 restart, rank 2 starts",
    ),
}


@pytest.mark.parametrize(("seen", "why"), FALLEN.values(), ids=FALLEN.keys())
def test_a_rank_that_does_not_run_restarts_the_whole_group(seen: RankSeen, why: str) -> None:
    """One rank alone cannot join a group that has formed; what is not up only starts."""
    survey = with_rank(applied(World()), "b", seen)
    plan = plan_for(World(), survey)

    assert plan.why == (why,)
    assert plan.generation == 2
    assert [row.action for row in plan.ranks][:2] == ["restart", "restart"]


DONE, UP = "exited", "active"


def with_ends(survey: Survey, *ends: tuple[str, int | None]) -> Survey:
    """Return *survey* with the ranks as they have ended, the last of *ends* for all that follow."""
    for rank, host in enumerate(("a", "a", "b", "b")):
        active, code = ends[min(rank, len(ends) - 1)]
        seen = RankSeen(rank, active, active == UP, 0, enabled=True, exit_status=code)
        survey = with_rank(survey, host, seen)
    return survey


FINISHED: dict[str, tuple[tuple[tuple[str, int | None], ...], str]] = {
    "all": (((DONE, 0),), f"ranks 0{EN_DASH}3"),
    "some, and the others are up": (((UP, None), (DONE, 0)), f"ranks 1{EN_DASH}3"),
}


@pytest.mark.parametrize(("ends", "who"), FINISHED.values(), ids=FINISHED.keys())
def test_a_program_that_has_finished_is_not_run_again(
    ends: tuple[tuple[str, int | None], ...], who: str
) -> None:
    """The plan is empty and says what runs it again; the built-in node is to run for ever."""
    survey = with_ends(applied(World()), *ends)
    plan = plan_for(World(), survey, replace(ORDER, ends=True))

    assert plan.empty
    assert [str(one) for one in plan.notices] == [
        f"{who}: finished with exit 0, so apply lets the group rest; `restart` runs it again"
    ]
    assert plan_for(World(), survey).why
    changed = plan_for(replace(World(), notes={2: "new"}), survey, replace(ORDER, ends=True))
    assert changed.why == (f"rank 2's inputs changed; ranks 0{EN_DASH}3 restart",)


UNFINISHED: dict[str, tuple[tuple[str, int | None], ...]] = {
    "one was stopped": ((DONE, 0), (DONE, 0), (DONE, 0), ("inactive", 0)),
    "one was killed": ((DONE, 0), (DONE, 143), (DONE, 0)),
    "one has failed": ((DONE, 0), ("failed", 3), (UP, None)),
    "one comes back and would wait for ever": ((DONE, 0), ("activating", 75), (UP, None)),
}


@pytest.mark.parametrize("ends", UNFINISHED.values(), ids=UNFINISHED.keys())
def test_a_program_that_has_not_finished_everywhere_is_run_again(
    ends: tuple[tuple[str, int | None], ...],
) -> None:
    """No group forms without the ranks that have finished."""
    plan = plan_for(World(), with_ends(applied(World()), *ends), replace(ORDER, ends=True))

    assert [row.action for row in plan.ranks if row.action == "keep"] == []
    assert any(line.startswith("rank 0 ") or "ranks 0" in line for line in plan.why)


def test_a_rank_that_is_coming_up_is_left_alone() -> None:
    """Activating is on its way; a plan in that moment calls for nothing."""
    survey = with_rank(applied(World()), "b", RankSeen(2, "activating", pid=1, enabled=True))

    assert plan_for(World(), survey).empty


def test_a_new_host_changes_the_inputs_of_all() -> None:
    """WORLD is in everybody's files: the plan names the new rank and those it concerns."""
    world = World(layout={"a": (0, 1), "b": (2, 3), "c": (4,)})
    survey = applied(World())
    plan = plan_for(world, replace(survey, hosts={**bare(world).hosts, **survey.hosts}))

    follows = f"ranks 0{EN_DASH}3 restart, rank 4 starts"
    assert f"ranks 0{EN_DASH}3's inputs changed; {follows}" in plan.why
    assert f"rank 4 is new; {follows}" in plan.why


def test_a_host_that_left_is_cleared() -> None:
    """Its ranks are stopped for good at GO, its files removed once the others have joined."""
    survey = applied(World())
    world = World(layout={"a": (0, 1)})
    plan = plan_for(world, survey, replace(ORDER, left={"b": World().site("b")}))

    assert plan.hosts["b"].go == (StopRanks((2, 3), disable=True),)
    assert plan.hosts["b"].confirm == (RemoveJob(),)
    assert {one.change for one in plan.hosts["b"].changes} == {Change.REMOVED}
    assert {one.action for one in plan.hosts["b"].actions} == {"stop"}
    after = settled(plan, world.render(plan.generation), survey)
    assert plan_for(world, after, replace(ORDER, left={"b": World().site("b")})).empty


def test_a_host_that_left_in_the_middle_of_an_apply_waits_for_nothing_older() -> None:
    """Its timer would start the ranks of long ago; the plan puts its own way back in that place."""
    survey = applied(World())
    job = replace(survey.hosts["b"].job, unconfirmed="r0")
    survey = replace(survey, hosts={**survey.hosts, "b": replace(survey.hosts["b"], job=job)})
    left = replace(ORDER, left={"b": World().site("b")})
    part = plan_for(World(layout={"a": (0, 1)}), survey, left).hosts["b"]

    assert part.back is not None
    assert (part.back.ranks, part.back.release) == ((), "r0")
    assert part.go == (StopRanks((2, 3), disable=True),)
    assert part.confirm == (RemoveJob(),)


def test_a_host_that_left_and_is_silent_is_warned_about() -> None:
    """Nobody can say that its ranks have stopped, so the plan does not keep quiet about it."""
    survey = surveyed({"a": applied(World()).hosts["a"].job}, {"b": "timed out"})
    order = replace(ORDER, left={"b": World().site("b")})
    plan = plan_for(World(layout={"a": (0, 1)}), survey, order)

    assert "b" not in plan.hosts
    assert [one.severity for one in plan.notices] == [Severity.WARNING]
    assert "timed out" in plan.notices[0].message


def test_a_rank_that_moved_away_stops_where_it_was() -> None:
    """Rank 1 moves from a to b: a stops and disables it, and its files go."""
    world = World(layout={"a": (0,), "b": (1, 2, 3)})
    plan = plan_for(world, applied(World()))
    removed = [one.path for one in plan.hosts["a"].changes if one.change is Change.REMOVED]

    assert plan.hosts["a"].go[:2] == (StopRanks((1,), disable=True), StopRanks((0,)))
    assert removed == [f"{tree('process').current}/env/1.env"]


def test_another_deployment_is_refused_with_its_owner() -> None:
    """The refusal names host, owner, controller, inventory and age, and how to take over."""
    survey = applied(World())
    stranger = replace(ORDER, deployment="d2", now=ORDER.now + 7300)
    with pytest.raises(CompileError) as refused:
        plan_for(World(), survey, stranger)

    said = str(refused.value)
    assert all(word in said for word in ("a:", "ann", "desk", "/lab/inventory.toml", "2 hours ago"))
    assert "--adopt" in said
    assert len(refused.value.findings) == 2


def test_adopting_marks_the_hosts_and_restarts_nobody() -> None:
    """Taking over files that are as they should be changes the mark alone."""
    plan = plan_for(World(), applied(World()), replace(ORDER, deployment="d2", adopt=True))

    assert kinds(plan, "a") == ([], [MarkDeployment])
    assert plan.generation == 1


def test_a_change_of_launch_is_refused() -> None:
    """Two managers would start the same rank; destroy comes first."""
    with pytest.raises(CompileError, match="destroy"):
        plan_for(World(launch="systemd"), applied(World()))


def test_a_host_nobody_asked_is_an_error() -> None:
    """A plan is never made around a host that it would change blindly."""
    with pytest.raises(CompileError, match="b is in the group and was not surveyed: timed out"):
        plan_for(World(), surveyed({"a": bare(World()).hosts["a"].job}, {"b": "timed out"}))


def test_units_are_installed_and_the_manager_reloads_once() -> None:
    """The unit is replaced between stop and start."""
    world = replace(World(launch="systemd"), unit="[Unit]\nDescription=new\n")
    plan = plan_for(world, applied(World(launch="systemd")))

    assert kinds(plan, "a")[1] == [
        StopRanks,
        SwitchRelease,
        InstallFile,
        ReloadUnits,
        MarkDeployment,
        StartRanks,
    ]


@pytest.mark.parametrize(("launch", "owner"), [("systemd", "ml"), ("process", "")])
def test_the_jobs_key_is_named_by_its_place_alone(launch: str, owner: str) -> None:
    """It is the ranks' to read; no step, and no release, has anything of its content."""
    world, other = World(launch=launch, key="k"), World(launch=launch, key="o")
    plan = plan_for(world, bare(world))
    (step,) = (one for one in plan.hosts["a"].go if one == key_step(launch, owner))

    assert step.digest == ""
    assert plan.release == plan_for(other, bare(other)).release
    assert [one.digest for one in plan.hosts["a"].go if isinstance(one, InstallFile)].count("") == 1
    assert digest("k") not in as_text(plan)


def key_step(launch: str, owner: str) -> InstallFile:
    return InstallFile(tree(launch).key, "", 1, 0o600, owner)


def test_another_key_restarts_the_group_and_reaches_every_host() -> None:
    """The plan says so, and shows no more than keyed digests."""
    plan = plan_for(World(key="o"), applied(World(key="k")))
    path = tree("process").key

    ranks = f"ranks 0{EN_DASH}3"
    assert plan.why == (f"{ranks}'s inputs changed ({path}); {ranks} restart",)
    for part in plan.hosts.values():
        (change,) = (one for one in part.changes if one.path == path)
        assert key_step("process", "") in part.go
        assert change.diff.splitlines() == [f"-{change.before}", f"+{change.after} (1 bytes)"]
        assert change.before.startswith("secret:")


def test_a_rank_with_several_changed_files_has_one_reason() -> None:
    """What changed for all is said once; what changed beside it for one rank is no second time."""
    before = World(launch="systemd", key="k")
    after = replace(before, unit="[Unit]\n#\n", key="o", notes={2: "new"})
    plan = plan_for(after, applied(before))
    place = tree("systemd")

    which = f"{place.units}/rlx-t@.service, {place.key}"
    ranks = f"ranks 0{EN_DASH}3"
    assert plan.why == (f"{ranks}'s inputs changed ({which}); {ranks} restart",)
    for part in plan.hosts.values():
        assert {one.why for one in part.actions} == {f"its inputs changed ({which})"}


def test_a_key_of_somebody_else_is_installed_anew() -> None:
    """A job that runs as another user than before has to be able to read it."""
    world = World(launch="systemd", key="k")
    survey = applied(world)
    job = survey.hosts["a"].job
    path = tree("systemd").key
    files = {**job.files, path: replace(job.files[path], owner="root")}
    facts = replace(survey.hosts["a"], job=replace(job, files=files))
    plan = plan_for(world, replace(survey, hosts={**survey.hosts, "a": facts}))
    (change,) = (one for one in plan.hosts["a"].changes if one.path == path)

    assert change.diff == "old owner root\nnew owner ml\n"
    assert key_step("systemd", "ml") in plan.hosts["a"].go


def test_a_group_that_goes_without_a_key_leaves_none() -> None:
    """What the ranks do not read any more does not lie about."""
    plan = plan_for(World(), applied(World(key="k")))

    assert RemoveFile(tree("process").key) in plan.hosts["a"].go


def test_boot_alone_starts_without_a_stop() -> None:
    """Enabling what runs needs no restart of it."""
    world = World(launch="systemd")
    plan = plan_for(world, applied(world), replace(ORDER, boot=False))

    assert kinds(plan, "a") == ([], [MarkDeployment, StartRanks])
    assert not plan.hosts["a"].actions


def test_a_stale_drop_in_is_removed() -> None:
    """A unit file of this job that nobody wants goes, and the manager reads again."""
    world = World(launch="systemd")
    survey = applied(world)
    facts = survey.hosts["a"]
    stale = f"{tree('systemd').units}/rlx-t@7.service.d/rank.conf"
    files = {**facts.job.files, stale: next(iter(facts.job.files.values()))}
    job = replace(facts.job, files=files)
    survey = replace(survey, hosts={**survey.hosts, "a": replace(facts, job=job)})
    plan = plan_for(world, survey)

    assert plan.hosts["a"].go == (RemoveFile(stale), ReloadUnits())


def test_a_job_file_that_is_no_longer_wanted_is_removed() -> None:
    """What lies in a folder of the person's and is not in the inventory any more goes."""
    stray = "/srv/train/old.py"
    survey = applied(World())
    facts = survey.hosts["a"]
    files = {**facts.job.files, stray: next(iter(facts.job.files.values()))}
    job = replace(facts.job, files=files)
    plan = plan_for(World(), replace(survey, hosts={**survey.hosts, "a": replace(facts, job=job)}))

    assert plan.hosts["a"].go == (RemoveFile(stray),)


def test_a_released_file_that_is_no_longer_wanted_goes_with_its_release() -> None:
    """The plan lists it as removed; a release without it takes the place of the old one."""
    survey = applied(World())
    facts = survey.hosts["a"]
    dropped = f"{tree('process').current}/old.py"
    files = {**facts.job.files, dropped: next(iter(facts.job.files.values()))}
    job = replace(facts.job, files=files)
    part = plan_for(World(), replace(survey, hosts={**survey.hosts, "a": replace(facts, job=job)}))

    assert [(one.path, one.change) for one in part.hosts["a"].changes] == [
        (dropped, Change.REMOVED)
    ]
    assert RemoveFile(dropped) not in part.hosts["a"].go
    assert any(isinstance(step, StageRelease) for step in part.hosts["a"].stage)


def test_a_secret_is_in_no_part_of_a_plan() -> None:
    """The diff of a secret file shows keyed digests, equal only for equal contents and keys."""
    world = replace(World(), secret=True, notes={0: "hunter2"})
    plan = plan_for(world, applied(World()))
    change = next(one for one in plan.hosts["a"].changes if one.path.endswith("0.env"))
    other = plan_for(world, applied(World()), replace(ORDER, secret=b"z" * 32))
    elsewhere = next(one for one in other.hosts["a"].changes if one.path == change.path)

    assert "hunter2" not in as_text(plan)
    assert change.after.startswith("secret:")
    assert change.diff.startswith("-secret:")
    assert change.after != elsewhere.after


def test_what_root_has_put_there_is_not_taken_for_nothing() -> None:
    """A user who cannot read the mark would start a second group beside the first."""
    path = tree("systemd").deployment
    job = JobSeen(files={path: FileSeen("", 0o600, "root", 1000)})
    survey = surveyed({"a": job, "b": JobSeen()})

    with pytest.raises(CompileError, match=rf"a: ann may not read {path}, which says what runs"):
        plan_for(World(), survey)


def test_a_plan_knows_the_way_back() -> None:
    """The first goes back to nothing; a later one to the release seen, with the ranks that ran."""
    first = plan_for(World(), bare(World())).hosts["a"].back
    survey = applied(World())
    later = plan_for(replace(World(), readme="new\n"), survey).hosts["a"].back

    assert first is not None
    assert (first.release, first.again, first.after_s) == ("", (), 180)
    assert later is not None
    assert (later.release, later.again) == (survey.hosts["a"].job.current, (0, 1))
    assert later.ranks == (0, 1)


@pytest.mark.parametrize("ran", ["notify", "exec", ""])
def test_a_host_that_is_left_goes_by_what_ran_there(ran: str) -> None:
    """Whatever the ranks to come do: only one that waits for its group may start again alone."""
    survey, left = applied(World()), World(layout={"a": (0,)})
    job = survey.hosts["b"].job
    assert job.deployed is not None
    job = replace(job, deployed=replace(job.deployed, ready=ran))
    survey = replace(survey, hosts={**survey.hosts, "b": replace(survey.hosts["b"], job=job)})
    order = replace(
        ORDER, ready="exec" if ran == "notify" else "notify", left={"b": World().site("b")}
    )
    back = make_plan(left.resolution, left.render, survey, order).hosts["b"].back

    assert back is not None
    assert (back.ranks, back.notify) == ((), ran in ("notify", ""))


def test_what_nobody_confirmed_is_touched_again() -> None:
    """A host that would go back by itself is asked to stay, though nothing on it differs."""
    survey = applied(World())
    job = replace(survey.hosts["a"].job, unconfirmed="r0")
    survey = replace(survey, hosts={**survey.hosts, "a": replace(survey.hosts["a"], job=job)})
    plan = plan_for(World(), survey)

    assert not plan.empty
    assert (plan.hosts["a"].go, plan.hosts["b"].empty) == ((), True)
    assert plan.hosts["a"].back is not None
    assert plan.hosts["a"].back.release == "r0"
