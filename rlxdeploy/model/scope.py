"""Whom a command is for: the terms of `--limit` and `--exclude`, and whom they choose.

A term is a host's or node's name, a pattern of such (`gpu-*`), `rank:2`, `rank:0-3`, `tag:x`, or
`@failed`: the hosts that failed in the last run.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from rlxdeploy.errors import UsageError

FAILED = "@failed"
_RANKS = re.compile(r"rank:([0-9]+)(?:-([0-9]+))?")
_FORMS = f"a host, a node, a pattern (gpu-*), rank:2, rank:0-3, tag:x or {FAILED}"


@dataclass(frozen=True, slots=True)
class Member:
    """One rank, or a host without any (*rank* None), with all that people may call it by."""

    host: str
    rank: int | None = None
    names: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """The terms as written; without any, everybody is meant."""

    limit: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def is_all(self) -> bool:
        return not (self.limit or self.exclude)

    @property
    def names_ranks(self) -> bool:
        """Whether one has to know who is which rank to tell whom this chooses."""
        return any(term.startswith("rank:") for term in (*self.limit, *self.exclude))

    def choose(self, members: Sequence[Member]) -> tuple[Member, ...]:
        """Return the members that the limit names, without those that are excluded.

        Raises UsageError where a term is none or names nobody, or nobody is left.
        """
        limit = _matching("--limit", self.limit, members) if self.limit else {*members}
        chosen = limit - _matching("--exclude", self.exclude, members)
        if members and not chosen:
            raise UsageError("--exclude leaves nobody of those that --limit names")
        return tuple(one for one in members if one in chosen)


ALL = Scope()


def parse_terms(written: Iterable[str]) -> tuple[str, ...]:
    """Return the terms of an option that was given once or more, each with commas between."""
    return tuple(term.strip() for text in written for term in text.split(","))


def _matching(option: str, terms: Sequence[str], members: Sequence[Member]) -> set[Member]:
    found: set[Member] = set()
    for term in terms:
        matches = _test(option, term)
        meant = {one for one in members if matches(one)}
        if not meant:
            raise UsageError(_nobody(option, term, members))
        found |= meant
    return found


def _test(option: str, term: str) -> Callable[[Member], bool]:
    """Return what tells whether a member is meant; raises UsageError where *term* is no term."""
    if term == FAILED:
        return lambda one: one.failed
    if term.startswith("tag:"):
        return lambda one: any(fnmatchcase(tag, term.removeprefix("tag:")) for tag in one.tags)
    if span := _RANKS.fullmatch(term):
        first, last = int(span[1]), int(span[2] or span[1])
        return lambda one: one.rank is not None and first <= one.rank <= last
    if not term or term.startswith(("@", "rank:")):
        raise UsageError(f"{option}: {term!r} is none of {_FORMS}")
    return lambda one: term in one.names or any(fnmatchcase(name, term) for name in one.names)


def _nobody(option: str, term: str, members: Sequence[Member]) -> str:
    if term == FAILED:
        return f"{option} {FAILED}: no host failed in the last run"
    names = {name for one in members for name in one.names}
    near = get_close_matches(term, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{option}: {term!r} names nobody{hint}; there are {'; '.join(_there(members))}"


def _there(members: Sequence[Member]) -> Iterator[str]:
    hosts = sorted({one.host for one in members})
    names = sorted({name for one in members for name in one.names} - {*hosts})
    ranks = sorted({one.rank for one in members if one.rank is not None})
    tags = sorted({tag for one in members for tag in one.tags})
    yield f"hosts {_listed(hosts)}" if hosts else "no hosts"
    if names:
        yield f"nodes {_listed(names)}"
    if ranks:
        yield f"ranks {_spans(ranks)}"
    if tags:
        yield f"tags {_listed(tags)}"


# A message that names thousands is read by nobody.
_MOST = 24


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _spans(ranks: Sequence[int]) -> str:
    """Return ranks as a term would have them: `0-3, 5`."""
    whole = len(ranks) > 1 and ranks[-1] - ranks[0] == len(ranks) - 1
    return f"{ranks[0]}-{ranks[-1]}" if whole else _listed([*map(str, ranks)])
