"""Who has a rank and who has none, and how a standby comes to one."""

from dataclasses import replace

import pytest

from rlxdeploy.errors import CompileError, UsageError
from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.survey import HostFacts
from rlxdeploy.resolve.promote import Promotion
from rlxdeploy.resolve.resolve import resolve
from tests.resolve.lab import CONTROLLER, deployed, load, machine, survey

JOB = '[job]\nwire = "rlx"\nsecurity = "none"\n'
A, B, C, D = (
    f'[[node]]\nssh = "{name}"\naddr = "10.0.0.{number}:29500"\n'
    for number, name in enumerate("abcd", start=1)
)
STANDBY = D + 'role = "standby"\nstandby_for = "10.0.0.2:29500"\n'
FOUR = JOB + A + B + C + STANDBY


def fleet(**ranks: tuple[int, ...]) -> tuple[HostFacts, ...]:
    """Return the machines a to d with these ranks deployed on them."""
    return tuple(
        with_ranks(machine(name, f"10.0.0.{number}/24"), ranks.get(name, ()))
        for number, name in enumerate("abcd", start=1)
    )


def with_ranks(facts: HostFacts, ranks: tuple[int, ...]) -> HostFacts:
    job = replace(facts.job, deployed=deployed(*ranks) if ranks else None)
    return replace(facts, job=job)


def settle(text: str, machines: tuple[HostFacts, ...], *wanted: str, **recorded: int) -> Resolution:
    """Resolve with some standbys promoted; hosts that are not among *machines* are down."""
    names = {facts.host.name for facts in machines}
    failed = {name: "timed out" for name in "abcd" if name not in names}
    promotion = Promotion(wanted, {name: (rank,) for name, rank in recorded.items()})
    return resolve(load(text), survey(*machines, failed=failed), CONTROLLER, promotion)


def who(group: Resolution) -> list[str]:
    return [seat.host for seat in group.seats]


def said(group: Resolution) -> str:
    return " | ".join(map(str, group.notices))


def test_a_standby_has_no_rank_and_holds_files() -> None:
    """It counts in no WORLD, and its host is one of the group's."""
    group = settle(FOUR, fleet())

    assert (group.world, who(group), list(group.hosts)) == (3, ["a", "b", "c"], [*"abcd"])
    assert group.on("d") == ()
    assert "standing by, with the files and without a rank: d" in said(group)


def test_a_draining_node_has_no_rank_and_its_host_no_part() -> None:
    """The highest rank fills its hole, and the plan says who moves and who drains."""
    text = JOB + A + B + 'role = "draining"\n' + C

    group = settle(text, fleet(a=(0,), b=(1,), c=(2,)))

    assert (who(group), list(group.hosts)) == (["a", "c"], ["a", "c"])
    assert "rank 2 of c becomes rank 1" in said(group)
    assert "draining, without a rank: b" in said(group)


def test_a_draining_host_that_is_down_holds_nobody_up() -> None:
    """That its ranks may still run there is a warning."""
    text = JOB + A + B + 'role = "draining"\n' + C

    group = settle(text, tuple(one for one in fleet() if one.host.name != "b"))

    assert who(group) == ["a", "c"]
    assert "b is draining and did not answer: timed out" in said(group)


@pytest.mark.parametrize("wanted", ["10.0.0.4:29500", "d", "10.0.0.2:29500"])
def test_a_standby_is_meant_by_address_name_or_principal(wanted: str) -> None:
    """On hosts with nothing deployed it has the rank that the file gives its principal."""
    group = settle(FOUR, fleet(), wanted)

    assert (who(group), list(group.hosts)) == (["a", "d", "c"], ["a", "c", "d"])


TAKEN_OVER = {
    "nothing is deployed": ({}, "adc"),
    "the principal's rank is not that of the file": ({"a": (2,), "b": (0,), "c": (1,)}, "dca"),
    "it has taken over already": ({"a": (2,), "d": (0,), "c": (1,)}, "dca"),
}


@pytest.mark.parametrize(("ranks", "order"), TAKEN_OVER.values(), ids=TAKEN_OVER.keys())
def test_a_promoted_standby_has_its_principals_rank(
    ranks: dict[str, tuple[int, ...]], order: str
) -> None:
    """Nobody else moves, and a second apply with the same words changes nothing."""
    group = settle(FOUR, fleet(**ranks), "d")

    assert "".join(who(group)) == order
    assert group.seats[order.index("d")].why["rank"] == "promoted: that of b"
    assert f"d is promoted: it takes rank {order.index('d')} of b" in said(group)
    assert "becomes rank" not in said(group)


def test_a_promotion_does_without_the_principals_host() -> None:
    """It is down: the ranks that the last apply gave it are on record."""
    a, _, c, d = fleet(a=(1,), c=(0,))

    group = settle(FOUR, (a, c, d), "d", b=2)

    assert who(group) == ["c", "a", "d"]
    assert "b is draining and did not answer" in said(group)


def test_two_standbys_take_over_from_two_hosts_that_are_down() -> None:
    """Each gets the rank that is on record for its own principal."""
    text = JOB + A + B + C + 'role = "standby"\nstandby_for = "10.0.0.1:29500"\n' + STANDBY
    _, _, c, d = fleet()

    group = settle(text, (c, d), "d", "c", a=1, b=0)

    assert who(group) == ["d", "c"]


def test_a_pin_and_manual_layers_go_to_the_successor() -> None:
    """What belongs to the rank is the successor's unless it has its own."""
    text = JOB + '[placement]\npolicy = "manual"\n'
    text += A + 'layers = "0:4"\nrank = 1\n' + B + 'layers = "4:9"\nrank = 0\n' + STANDBY

    a, _, _, d = fleet()
    group = settle(text, (a, d), "d")

    assert who(group) == ["d", "a"]
    assert [seat.share.layers for seat in group.seats] == ["4:9", "0:4"]


def test_a_standby_on_a_ranks_host_takes_over_too() -> None:
    """One machine then has both ranks, each on a port of its own."""
    text = JOB + A + B + C + C.replace("29500", "29600")
    text += 'role = "standby"\nstandby_for = "10.0.0.2:29500"\n'

    group = settle(text, fleet(a=(0,), b=(1,), c=(2,))[:3], "c#2")
    again = settle(text, fleet(a=(0,), c=(1, 2))[:3], "c#2")

    assert who(group) == who(again) == ["a", "c", "c"]
    assert group.peers == again.peers == ("10.0.0.1:29500", "10.0.0.3:29600", "10.0.0.3:29500")


@pytest.mark.parametrize("wanted", ["10.0.0.9:1", "10.0.0.1:29500", "no such", ""])
def test_to_promote_nobody_is_a_bad_command_line(wanted: str) -> None:
    """The standbys that there are stand in the error."""
    with pytest.raises(UsageError, match=r"there is d \(for 10\.0\.0\.2:29500\)"):
        settle(FOUR, fleet(), wanted)


UNFIT = {
    "for nobody": (JOB + A + D + 'role = "standby"\n', "d stands by for no active node"),
    "with other slots": (
        FOUR + "slots = 2\n",
        "node[3].slots: d has 2 slots, b has 1",
    ),
}


@pytest.mark.parametrize(("text", "message"), UNFIT.values(), ids=UNFIT.keys())
def test_a_standby_that_cannot_take_over_is_an_error_of_the_file(text: str, message: str) -> None:
    """It is told at the key that would have to change."""
    with pytest.raises(CompileError) as caught:
        settle(text, fleet(), "d")

    assert message in str(caught.value)
