"""Found hosts with ranks: a search that misses one neither forgets it nor lets it go in silence."""

from collections.abc import Iterator

import pytest

from rlxdeploy.errors import CompileError, Severity, Unreachable, Untrusted
from rlxdeploy.model.codec import dump_survey, load_survey
from rlxdeploy.model.found import Found
from rlxdeploy.model.host import Host, Tree
from rlxdeploy.model.record import HostRecord
from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.silence import Silence
from rlxdeploy.model.survey import HostFacts, Survey
from rlxdeploy.resolve.checkup.examine import examine
from rlxdeploy.resolve.checkup.patient import Asked
from rlxdeploy.resolve.discovery import settled
from rlxdeploy.resolve.recall import missed, recalled, remembered
from rlxdeploy.resolve.resolve import resolve
from rlxdeploy.resolve.sift import excluded
from tests.resolve.lab import CONTROLLER, load, machine

HEAD = '[job]\nwire = "rlx"\nsecurity = "none"\n'
SEARCH = '[discover]\nssh_hosts = ["gpu-a"]\nsubnet = "10.0.5.0/24"\nmdns = true\n'
HEARD = Found("ssh://10.9.0.4:2222", "mdns", "10.9.0.4", "loud")
TREE = Tree("/h", "/r", "/s", "/u")


def record(name: str, *ranks: int, found: Found | None = None) -> HostRecord:
    return HostRecord(Host(name, name), TREE, "process", ranks, found)


RECORDED = (
    record("gpu-a", 0),
    record("10.0.5.7", 1),
    record("ssh://10.0.5.9:2222", 2),
    record(HEARD.ssh, 3, found=HEARD),
    record("gpu-old", 4),
    record("10.9.0.5", 5),
    record("10.0.5.8"),
)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (SEARCH, ["gpu-a", "10.0.5.7", "ssh://10.0.5.9:2222", HEARD.ssh]),
        (SEARCH.replace("/24", "/29"), ["gpu-a", "10.0.5.7", HEARD.ssh]),
        (SEARCH.replace("gpu-a", "gpu-b"), ["10.0.5.7", "ssh://10.0.5.9:2222", HEARD.ssh]),
        (SEARCH.replace("true", "false"), ["gpu-a", "10.0.5.7", "ssh://10.0.5.9:2222"]),
        (f'{SEARCH}exclude = ["10.0.5.8/30", "loud", "gpu-a"]\n', ["10.0.5.7"]),
        (f"{SEARCH}probe = false\n", []),
        (
            f'{SEARCH}[[node]]\nssh = "gpu-a"\n[[node]]\nssh = "10.0.5.7"\n',
            [
                *("ssh://10.0.5.9:2222", HEARD.ssh),
            ],
        ),
    ],
    ids=["all", "smaller subnet", "another alias", "no mDNS", "excluded", "unprobed", "written"],
)
def test_who_is_remembered_is_who_the_search_still_means(text: str, known: list[str]) -> None:
    """A host without ranks, or whose way is no longer gone, leaves as it always did."""
    loaded = load(HEAD + text)

    found = remembered(loaded, RECORDED, excluded(loaded, {}))

    assert [one.ssh for one in found] == known
    assert all(one.ranks for one in found)


def test_who_was_missed_stands_where_he_would_have_been_found() -> None:
    """In the order of the search, and it is told; who was found has his ranks with him."""
    loaded = load(HEAD + SEARCH)
    found = [
        Found("gpu-a", "ssh_hosts"),
        *(Found(f"10.0.5.{last}", "subnet", f"10.0.5.{last}") for last in (3, 8, 10)),
        Found("10.9.0.1", "mdns", "10.9.0.1"),
    ]

    asked = recalled(found, remembered(loaded, RECORDED, excluded(loaded, {})))
    told = [*missed(loaded, found, asked)]

    assert [(one.ssh, one.ranks) for one in asked] == [
        ("gpu-a", (0,)),
        ("10.0.5.3", ()),
        ("10.0.5.7", (1,)),
        ("10.0.5.8", ()),
        ("ssh://10.0.5.9:2222", (2,)),
        ("10.0.5.10", ()),
        ("10.9.0.1", ()),
        (HEARD.ssh, (3,)),
    ]
    assert [str(one).partition(": not found this time")[0].rpartition(": ")[2] for one in told] == [
        *("10.0.5.7", "ssh://10.0.5.9:2222", f"{HEARD.ssh} (loud)"),
    ]
    assert {one.severity for one in told} == {Severity.NOTICE}


def members(*ranks: int) -> Iterator[Found]:
    yield from (
        Found(f"10.0.5.{rank}", "subnet", f"10.0.5.{rank}", ranks=(rank,)) for rank in ranks
    )


def host(last: int, *ranks: int) -> HostFacts:
    return machine(f"10.0.5.{last}", f"10.0.5.{last}/24", ranks=ranks)


def seen(*machines: HostFacts, found: tuple[Found, ...], untrusted: tuple[str, ...] = ()) -> Survey:
    failed = {one.ssh: "no answer" for one in found}
    hosts = {one.host.name: one for one in machines}
    return Survey(
        hosts,
        {name: why for name, why in failed.items() if name not in hosts},
        found=found,
        silent={name: Silence("Untrusted", failed[name]) for name in untrusted},
    )


def settle(survey: Survey, keys: str = "", max_silent: float = 0) -> Resolution:
    # As with `plan --survey`, from the file alone.
    survey = load_survey(dump_survey(survey), "s.json")
    loaded = load(HEAD + keys + SEARCH)
    grown = settled(loaded, survey, excluded(loaded, {}))
    return resolve(grown, survey, CONTROLLER, max_silent=max_silent)


LOST = seen(host(0, 0), host(2, 2), found=(*members(0, 1, 2),))


def test_a_member_that_does_not_answer_stops_the_plan() -> None:
    """As a written host does, with exit 4, and the way to let it go."""
    with pytest.raises(ExceptionGroup) as caught:
        settle(LOST)

    (one,) = caught.value.exceptions
    assert isinstance(one, Unreachable)
    assert str(one).startswith("10.0.5.1: survey: no answer (it has ranks since the last apply")
    assert "exclude" in str(one)
    assert str(caught.value).startswith("1 of 3 hosts failed")


def test_a_member_whose_key_is_another_stops_the_plan() -> None:
    """It may be somebody else by now: a person has to look."""
    stranger = seen(host(0, 0), found=(*members(0, 1),), untrusted=("10.0.5.1",))

    with pytest.raises(ExceptionGroup) as caught:
        settle(stranger)

    assert isinstance(caught.value.exceptions[0], Untrusted)


@pytest.mark.parametrize(("keys", "max_silent"), [("", 1), ("min_nodes = 2\n", 0)])
def test_a_group_may_go_on_without_a_member(keys: str, max_silent: float) -> None:
    """Where a person asks for it, or has said how few will do; who is missing is named."""
    group = settle(LOST, keys, max_silent)

    assert [(seat.rank, seat.host) for seat in group.seats] == [(0, "10.0.5.0"), (1, "10.0.5.2")]
    assert group.absent == ("10.0.5.1",)
    assert "10.0.5.1 is left out: no answer" in "\n".join(map(str, group.notices))


def test_a_member_that_is_found_under_a_new_name_is_not_missed() -> None:
    """Its ranks are on a machine that answers; one with ranks of its own is another machine."""
    moved = Found("10.0.5.99", "subnet", "10.0.5.99")

    group = settle(seen(host(0, 0), host(99, 1), found=(*members(0, 1), moved)))

    assert [(seat.rank, seat.host) for seat in group.seats] == [(0, "10.0.5.0"), (1, "10.0.5.99")]
    with pytest.raises(ExceptionGroup):
        settle(seen(host(0, 0, 1), found=(*members(0, 1),)))


def test_who_was_never_a_member_is_still_no_error() -> None:
    """With no record, or before the first apply, a found host that refuses us is listed."""
    stranger = Found("10.0.5.9", "subnet", "10.0.5.9")
    group = settle(seen(host(0, 0), found=(*members(0), stranger)))

    assert [seat.host for seat in group.seats] == ["10.0.5.0"]
    with pytest.raises(CompileError):
        settle(seen(host(0, 0), found=(*members(0), stranger)), "expect = 2\n")


def test_doctor_calls_a_missed_member_an_error() -> None:
    """What a plan refuses is no notice."""
    loaded = load(HEAD + SEARCH)
    grown = settled(loaded, LOST, excluded(loaded, {}))

    told = examine(grown, LOST, Asked(0.0, 1.0)).ailments

    assert [(one.host, one.check) for one in told if one.severity is Severity.ERROR] == [
        ("10.0.5.1", "reach")
    ]
