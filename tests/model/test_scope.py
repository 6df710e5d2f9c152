"""Whom `--limit` and `--exclude` mean."""

import pytest

from rlxdeploy.errors import UsageError
from rlxdeploy.model.scope import ALL, Member, Scope, parse_terms

ODD = Member("[fd00::5]", 4, frozenset({"[fd00::5]"}))
MEMBERS = (
    Member("gpu-a", 0, frozenset({"gpu-a", "first"}), frozenset({"fast"})),
    Member("gpu-a", 1, frozenset({"gpu-a", "first"}), frozenset({"fast"})),
    Member("gpu-b", 2, frozenset({"gpu-b"}), frozenset({"fast", "rack2"}), failed=True),
    Member("mac", 3, frozenset({"mac"})),
    Member("spare", None, frozenset({"spare"})),
)

# The options as written, and the ranks (None: the host without one) that are meant.
CHOSEN = {
    "nothing written": ((), (), [0, 1, 2, 3, None]),
    "a host": (("gpu-a",), (), [0, 1]),
    "a node by its name": (("first",), (), [0, 1]),
    "a pattern": (("gpu-*",), (), [0, 1, 2]),
    "a pattern of one letter": (("gpu-?",), (), [0, 1, 2]),
    "a pattern of letters": (("gpu-[b-z]",), (), [2]),
    "everybody": (("*",), (), [0, 1, 2, 3, None]),
    "one rank": (("rank:1",), (), [1]),
    "a span of ranks": (("rank:1-2",), (), [1, 2]),
    "a span that goes on behind the last": (("rank:3-99",), (), [3]),
    "a tag": (("tag:rack2",), (), [2]),
    "a pattern of tags": (("tag:f*",), (), [0, 1, 2]),
    "who failed": (("@failed",), (), [2]),
    "several with commas": (("mac,rank:0",), (), [0, 3]),
    "several with commas and blanks": (("mac, spare",), (), [3, None]),
    "the option given twice": (("mac", "rank:0"), (), [0, 3]),
    "a host without a rank": (("spare",), (), [None]),
    "all but one": ((), ("gpu-a",), [2, 3, None]),
    "some but a rank": (("gpu-*",), ("rank:0",), [1, 2]),
    "all but those that failed": ((), ("@failed,spare",), [0, 1, 3]),
}


@pytest.mark.parametrize(("limit", "exclude", "ranks"), CHOSEN.values(), ids=CHOSEN.keys())
def test_terms_mean_members(
    limit: tuple[str, ...], exclude: tuple[str, ...], ranks: list[int | None]
) -> None:
    """Names, patterns, ranks, tags and who failed; several add up, and exclude takes away."""
    scope = Scope(parse_terms(limit), parse_terms(exclude))

    assert [one.rank for one in scope.choose(MEMBERS)] == ranks


REFUSED = {
    "a misspelt host": (("gpu-aa",), (), "'gpu-aa' names nobody; did you mean 'gpu-a'?"),
    "who there is": (("zzz",), (), "there are hosts gpu-a, gpu-b, mac, spare; nodes first; ranks"),
    "ranks there are": (("rank:7",), (), "ranks 0-3; tags fast, rack2"),
    "one good and one bad": (("mac,zzz",), (), "--limit: 'zzz' names nobody"),
    "a bad one to exclude": ((), ("zzz",), "--exclude: 'zzz' names nobody"),
    "no tag": (("tag:slow",), (), "tags fast, rack2"),
    "an empty term": (("mac,",), (), "'' is none of a host"),
    "no number": (("rank:x",), (), "'rank:x' is none of"),
    "half a span": (("rank:1-",), (), "'rank:1-' is none of"),
    "a span backwards": (("rank:3-1",), (), "'rank:3-1' names nobody"),
    "a rank that is no digit of ours": (("rank:\N{ARABIC-INDIC DIGIT ONE}",), (), "is none of"),
    "an unknown group": (("@all",), (), "'@all' is none of"),
    "capitals": (("MAC",), (), "'MAC' names nobody"),
    "everybody excluded": (("mac",), ("mac",), "--exclude leaves nobody"),
}


@pytest.mark.parametrize(("limit", "exclude", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_a_term_that_means_nobody_is_an_error(
    limit: tuple[str, ...], exclude: tuple[str, ...], said: str
) -> None:
    """It is a usage error that says what there is; a typo never means everybody."""
    with pytest.raises(UsageError) as refused:
        Scope(parse_terms(limit), parse_terms(exclude)).choose(MEMBERS)

    assert said in str(refused.value)


def test_a_name_that_reads_like_a_pattern_is_a_name() -> None:
    """What stands in the inventory can be written as it stands there."""
    assert Scope(("[fd00::5]",)).choose((*MEMBERS, ODD)) == (ODD,)


def test_nobody_failed_is_said_so() -> None:
    """After a run without failures there is nothing to do again."""
    with pytest.raises(UsageError, match="no host failed in the last run"):
        Scope(("@failed",)).choose(MEMBERS[:2])


def test_a_long_list_is_cut() -> None:
    """Two thousand hosts are not all named in one line."""
    many = [Member(f"h{number}", number, frozenset({f"h{number}"})) for number in range(2000)]
    with pytest.raises(UsageError) as refused:
        Scope(("zzz",)).choose(many)

    assert "and 1976 more" in str(refused.value)
    assert "ranks 0-1999" in str(refused.value)


def test_nobody_at_all_is_no_error_of_the_options() -> None:
    """Where no host is known the command says so itself."""
    assert ALL.choose(()) == ()
