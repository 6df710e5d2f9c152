"""Which links are tried before a change, and what the hosts' answers come to."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from rlxdeploy.model.plan import Plan
from rlxdeploy.model.preflight import Found, How, Link, Posted, Preflight
from rlxdeploy.model.record import Record
from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.survey import PREFLIGHT, PortHolder, RankSeen, Survey
from rlxdeploy.plan.make import make_plan
from rlxdeploy.plan.matrix import calls, judged, rivals, taken
from rlxdeploy.plan.matrix_text import matrix_lines
from rlxdeploy.plan.preflight import EVERY_LINK, preflight
from rlxdeploy.plan.text import plan_lines
from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.assembly import Assembly
from rlxdeploy.runtime.link.form import Onlooker, Place
from rlxdeploy.runtime.link.meeting import Secrets
from rlxdeploy.runtime.roster import dials
from rlxdeploy.runtime.wire.identity import Identity
from tests.plan.world import ORDER, World, bare, settled, with_rank

LAYOUT: Mapping[str, tuple[int, ...]] = {"a": (0, 1), "b": (2,), "c": (3,)}
WORLD = World(layout=LAYOUT)
# The same ranks at the same places, each with something new in its environment.
NEWER = World(layout=LAYOUT, notes=dict.fromkeys(range(4), "new"))
BARE = "it has no python3"


def group(wire: str = "native", topology: str = "mesh") -> Resolution:
    resolution = replace(WORLD.resolution, wire=wire, topology=topology)
    if topology == "mesh":
        return resolution
    seats = (resolution.seats[0], *(replace(one, peer=None) for one in resolution.seats[1:]))
    return replace(resolution, seats=seats)


def planned(resolution: Resolution, survey: Survey, world: World = NEWER) -> Plan:
    return make_plan(resolution, world.render, survey, ORDER)


def wanted(
    resolution: Resolution | None = None,
    survey: Survey | None = None,
    record: Record | None = None,
) -> Preflight:
    resolution, survey = resolution or group(), survey or bare(WORLD)
    return preflight(planned(resolution, survey), resolution, survey, record)


def dialled_by_the_runtime(rank: int, world: int, wire: str, *, star: bool) -> set[int]:
    if wire == "rlx":
        return set(dials(rank, world, star=star))
    identity = Identity("j", "p", world, rank, "", "none", "h", 1)
    place = Place(rank, world, star, [Address("127.0.0.1", 1)] * world, 1.0)
    assembly = Assembly(place, None, Secrets(identity, b""), Limits(), Onlooker())
    assembly.start()
    return {peer for peer, why in assembly.roster.reasons().items() if "should dial in" not in why}


@pytest.mark.parametrize("wire", ["native", "rlx"])
@pytest.mark.parametrize("topology", ["mesh", "star"])
def test_the_links_are_those_that_the_runtime_makes(wire: str, topology: str) -> None:
    """Every rank is to dial whom its own code dials, and nobody else."""
    resolution = group(wire, topology)
    links = {(one.dialler, one.listener) for one in wanted(resolution).links}

    own = {
        (rank, other)
        for rank in range(resolution.world)
        for other in dialled_by_the_runtime(rank, 4, wire, star=topology == "star")
    }
    assert links == own
    assert len(links) == (3 if topology == "star" else 6)


def test_hosts_listen_where_their_ranks_will() -> None:
    """At the peer's address, or at bind where that is written; a star's workers nowhere."""
    resolution = group()
    bound = replace(resolution.seats[1], bind="0.0.0.0")  # noqa: S104 - as a person may write
    resolution = replace(resolution, seats=(resolution.seats[0], bound, *resolution.seats[2:]))

    trials = wanted(resolution).trials
    posts = {name: [str(post.at) for post in trial.posts] for name, trial in trials.items()}
    assert posts == {"a": ["10.0.0.1:29500", "0.0.0.0:29501"], "b": ["10.0.0.1:29502"], "c": []}
    star = wanted(group(topology="star")).trials
    assert {name: len(trial.posts) for name, trial in star.items()} == {"a": 1, "b": 0, "c": 0}


def applied(release: str = "r") -> tuple[Survey, Record]:
    """Return the survey after an apply of the whole world, and its record."""
    before = bare(WORLD)
    plan = planned(group(), before, WORLD)
    survey = settled(plan, WORLD.render(1), before)
    record = Record("d1", "t", plan.release, 1, (), plan.ranks)
    return survey, replace(record, release=release) if release != "r" else record


def test_nothing_is_tried_where_neither_peers_nor_world_change() -> None:
    """The record tells, as long as every host still has that very release."""
    survey, record = applied()
    assert wanted(survey=survey, record=record).why_not == "neither PEERS nor WORLD changes"
    assert wanted(survey=survey, record=record).trials == {}

    for changed in (
        wanted(survey=survey, record=applied("another")[1]),
        wanted(survey=bare(WORLD), record=record),
        wanted(survey=bare(WORLD), record=replace(record, ranks=record.ranks[1:])),
    ):
        assert "PEERS" not in changed.why_not


def test_a_plan_that_leaves_a_host_as_it_is_changes_no_peers() -> None:
    """Whatever the record has lost: every rank is told WORLD and PEERS, so all would change."""
    survey, _ = applied()
    plan, same = planned(group(), survey), planned(group(), survey, WORLD)
    some = replace(plan, hosts={**plan.hosts, "c": same.hosts["c"]})

    assert "PEERS" not in preflight(plan, group(), survey, None).why_not
    assert "PEERS" in preflight(some, group(), survey, None).why_not


def test_a_group_that_runs_elsewhere_is_left_to_whoever_runs_it() -> None:
    """No host of ours could dial, and no plan says that a link will be tried."""
    seats = tuple(replace(one, managed=False) for one in group().seats)
    elsewhere = replace(group(), seats=seats, hosts={})

    assert wanted(elsewhere, Survey({})).why_not == "every rank runs elsewhere"


def test_a_group_of_one_dials_nobody() -> None:
    """WORLD 1 is said to be the reason."""
    alone = World(layout={"a": (0,)})
    survey = bare(alone)
    plan = make_plan(alone.resolution, alone.render, survey, ORDER)

    assert preflight(plan, alone.resolution, survey, None).why_not == "one rank has no peers"


def test_a_port_of_a_running_rank_is_not_dialled() -> None:
    """Neither where it is seen to listen, nor where it was last put; others are tried."""
    survey, record = applied()
    ran = {"a": (0, 1), "b": (2,), "c": (3,)}
    for host, ranks in ran.items():
        for rank in ranks:
            up = "active" if host == "a" else "inactive"
            survey = with_rank(survey, host, RankSeen(rank, up))
    moved = replace(record, ranks=(*record.ranks[:1], replace(record.ranks[1], address="x:1")))

    spared = wanted(survey=survey, record=moved).spared
    assert {link.listener for link in spared} == {0}
    assert set(spared.values()) == {"rank 0 of this job runs at 10.0.0.1:29500"}

    unknown = wanted(survey=survey, record=None).spared
    assert {link.listener for link in unknown} == {0, 1}, "wherever they may be"

    idle = bare(WORLD)
    facts = idle.hosts["b"]
    held = replace(facts, holders=(PortHolder("::", 29502, 7, "python3", rank=2),))
    listening = wanted(survey=replace(idle, hosts={**idle.hosts, "b": held})).spared
    assert {link.listener for link in listening} == {2}


def test_where_every_port_is_held_there_is_nothing_to_try() -> None:
    """The reason is one of the links', with how many are like it."""
    survey, _ = applied()
    every = wanted(survey=survey)

    assert every.trials == {}
    assert every.why_not == "rank 0 of this job runs at 10.0.0.1:29500 (and so for 2 more)"


def elsewhere(wire: str, rank: int = 0) -> Resolution:
    resolution = group(wire)
    seats = list(resolution.seats)
    seats[rank] = replace(seats[rank], managed=False, host="far")
    return replace(resolution, seats=tuple(seats))


def test_a_rank_elsewhere_is_dialled_and_proves_little() -> None:
    """Nobody listens in its place; it answers or is not up yet, and no link from it is tried."""
    own = wanted(elsewhere("native"))
    to_it = [link for link in own.links if link.listener == 0]
    posted = {name: Posted() for name in own.trials}

    assert {link.ours for link in to_it} == {False}
    assert set(to_it) <= {link for few in calls(own, posted).values() for link in few}
    refused = judged(own, posted, dict.fromkeys(to_it, Found(How.REFUSED, "no")), {}, 0.1)
    assert {one.found.how for one in refused.tried if one.link in to_it} == {How.UNPROVEN}
    assert "rank 0 runs elsewhere; refused: no" in {one.found.detail for one in refused.tried}

    from_it = wanted(elsewhere("native", 3)).spared
    assert {link.dialler for link in from_it} == {3}
    assert "no stranger may call" in next(iter(wanted(elsewhere("rlx", 3)).spared.values()))


def test_what_is_known_without_dialling_is_not_dialled() -> None:
    """A host without Python proves nothing, and nobody calls a rank that cannot listen."""
    own = wanted()
    busy = Found(How.TAKEN, "Address already in use")
    posted = {"a": Posted({1: busy}), "b": Posted(), "c": Posted(bare=BARE)}

    whom = {host: [link.listener for link in links] for host, links in calls(own, posted).items()}
    assert whom == {"a": [0], "b": [0]}
    answers = {link: Found(How.ANSWERED) for links in calls(own, posted).values() for link in links}
    holder = PortHolder("0.0.0.0", 29501, 812, "nc -l", "old.service")  # noqa: S104 - a holder's
    assert taken(own, posted) == {"a": (29501,)}
    matrix = judged(own, posted, answers, {"a": (holder,)}, 0.5)

    hows = {(one.link.dialler, one.link.listener): one.found.how for one in matrix.tried}
    assert hows == {
        (1, 0): How.ANSWERED,
        (2, 0): How.ANSWERED,
        (2, 1): How.TAKEN,
        **{(3, to): How.UNPROVEN for to in range(3)},
    }
    assert not matrix.ok
    (blocked,) = matrix.blocked
    assert (blocked.host, str(blocked.at)) == ("a", "10.0.0.1:29501")
    assert blocked.found.detail == "by pid 812 (nc -l) of unit old.service"


TAKEN = Found(How.TAKEN, "Address already in use")
RIVAL = PortHolder("10.0.0.1", 29501, 7, f"python3 -I - {PREFLIGHT} t: apply by ann@desk")
RIVALS: Mapping[str, tuple[dict[int, Found], tuple[PortHolder, ...], dict[int, object]]] = {
    "another preflight": ({1: TAKEN}, (RIVAL,), {1: ("a", RIVAL)}),
    "one that has ended meanwhile": ({1: TAKEN}, (), {1: ("a", None)}),
    "a stranger": ({1: TAKEN}, (replace(RIVAL, command="nc -l"),), {}),
    "a stranger too": ({0: TAKEN, 1: TAKEN}, (RIVAL, replace(RIVAL, port=29500, command="nc")), {}),
    "a port that cannot be had": ({0: Found(How.DEAF), 1: TAKEN}, (RIVAL,), {}),
    "nobody": ({}, (), {}),
}


@pytest.mark.parametrize(("failures", "holders", "found"), RIVALS.values(), ids=RIVALS)
def test_another_preflight_is_told_from_a_stranger(
    failures: dict[int, Found], holders: tuple[PortHolder, ...], found: dict[int, object]
) -> None:
    """It is gone in seconds, so that to try again is of use; beside a stranger it is not."""
    assert rivals(wanted(), {"a": Posted(failures)}, {"a": holders}) == found


def test_a_host_without_python_is_neither_green_nor_red() -> None:
    """The apply may go on, and the text says what is not proven, and why."""
    own = wanted()
    posted = {"a": Posted(), "b": Posted(), "c": Posted(bare=BARE)}
    answers = {link: Found(How.ANSWERED) for link in own.links}
    matrix = judged(own, posted, answers, {}, 0.25)

    assert matrix.ok
    assert [line.text for line in matrix_lines(matrix)] == [
        "preflight: 3 of 6 links answered in 0.2 s, 3 not proven",
        "          to 0        to 1        to 2",
        "  rank 1  ok          -           -",
        "  rank 2  ok          ok          -",
        "  rank 3  not proven  not proven  not proven",
        f"  rank 3 to ranks 0\N{EN DASH}2: not proven: c: {BARE}",
    ]


def failed(**hows: tuple[int, int]) -> Mapping[Link, Found]:
    ends = {pair: How[name] for name, pair in hows.items()}
    return {
        link: Found(ends.get((link.dialler, link.listener), How.ANSWERED))
        for link in wanted().links
    }


TOLD = {
    "a firewall that drops": (
        failed(SILENT=(2, 1)),
        "  rank 2 on b to rank 1 on a at 10.0.0.1:29501: timed out; a firewall drops it",
    ),
    "a firewall that rejects": (
        failed(REFUSED=(3, 2)),
        "  rank 3 on c to rank 2 on b at 10.0.0.1:29502: refused; its listener was up",
    ),
    "a net that nobody reaches": (
        failed(NO_ROUTE=(1, 0)),
        "  rank 1 on a to rank 0 on a at 10.0.0.1:29500: no route; no way leads there",
    ),
    "somebody else at the address": (
        failed(STRANGER=(3, 0)),
        "  rank 3 on c to rank 0 on a at 10.0.0.1:29500: a stranger answered; another machine",
    ),
}


@pytest.mark.parametrize(("answers", "line"), TOLD.values(), ids=TOLD)
def test_a_failure_names_both_ends_and_its_kind(answers: Mapping[Link, Found], line: str) -> None:
    """One link that fails makes the preflight fail, and there is a hint what that means."""
    own = wanted()
    matrix = judged(own, dict.fromkeys(own.trials, Posted()), answers, {}, 0.1)

    assert not matrix.ok
    assert [one.text for one in matrix_lines(matrix) if one.text.startswith(line)]


def test_a_big_matrix_is_told_by_who_fails_alike() -> None:
    """Forty-seven ranks that cannot reach one are a line, not forty-seven."""
    many = World(layout={f"h{rank}": (rank,) for rank in range(48)})
    resolution, survey = replace(many.resolution, wire="native"), bare(many)
    own = preflight(make_plan(resolution, many.render, survey, ORDER), resolution, survey, None)
    answers = {
        link: Found(How.SILENT if link.listener == 0 else How.ANSWERED) for link in own.links
    }
    lines = [*matrix_lines(judged(own, dict.fromkeys(own.trials, Posted()), answers, {}, 4.0))]

    assert [line.text.partition(";")[0] for line in lines] == [
        "preflight: 1081 of 1128 links answered in 4.0 s",
        "  ranks 1\N{EN DASH}47 to rank 0 on h0 at 10.0.0.1:29500: timed out",
    ]


@pytest.mark.parametrize("wire", ["native", "rlx"])
def test_of_a_big_mesh_a_sample_is_tried(wire: str) -> None:
    """Everybody dials and is dialled from another host as on the whole; nothing grows as n²."""
    ranks, slots = 1024, 8
    hosts = range(ranks // slots)
    many = World(layout={f"h{n}": tuple(range(n * slots, (n + 1) * slots)) for n in hosts})
    resolution, survey = replace(many.resolution, wire=wire), bare(many)
    plan = make_plan(resolution, many.render, survey, ORDER)
    own = preflight(plan, resolution, survey, None)

    assert len(own.links) < ranks * 11
    assert len(own.links) + own.untried == ranks * (ranks - 1) // 2
    first, last = ({0}, {ranks - 1}) if wire == "native" else ({ranks - 1}, {0})
    assert {link.dialler for link in own.links} == {*range(ranks)} - first
    assert {link.listener for link in own.links} == {*range(ranks)} - last
    across = [link for link in own.links if link.source != link.target]
    assert {host for link in across for host in (link.source, link.target)} == {*many.layout}
    lines = [line.text for line in matrix_lines(judged(own, {}, {}, {}, 0.5))]
    assert lines[0].endswith("; a sample of 523,776")
    assert "  a sample of the links between ranks is tried before anything is changed" in [
        line.text for line in plan_lines(replace(plan, preflight=True), ())
    ]


def test_of_the_biggest_mesh_that_is_tried_whole_no_link_is_left_out() -> None:
    """Thirty-two thousand links, and the sentence says nothing of a sample."""
    many = World(layout={"a": tuple(range(EVERY_LINK))})
    resolution, survey = many.resolution, bare(many)
    plan = make_plan(resolution, many.render, survey, ORDER)
    own = preflight(plan, resolution, survey, None)

    assert (len(own.links), own.untried) == (EVERY_LINK * (EVERY_LINK - 1) // 2, 0)
