"""What the answers of the hosts come to: whom to dial once all listen, and every link's end."""

from collections.abc import Iterator, Mapping

from rlxdeploy.model.preflight import (
    Blocked,
    Found,
    How,
    Link,
    Matrix,
    Post,
    Posted,
    Preflight,
    Tried,
)
from rlxdeploy.model.survey import PortHolder

_ELSEWHERE = "write an address of that host as addr, or as bind where addr is forwarded to it"


def calls(wanted: Preflight, posted: Mapping[str, Posted]) -> Mapping[str, tuple[Link, ...]]:
    """Return whom each host that can is to dial: those at whose places somebody listens."""
    found: dict[str, list[Link]] = {}
    for link in wanted.links:
        if _known(link, wanted, posted) is None:
            found.setdefault(link.source, []).append(link)
    return {host: tuple(few) for host, few in found.items()}


def taken(wanted: Preflight, posted: Mapping[str, Posted]) -> Mapping[str, tuple[int, ...]]:
    """Return by host the ports that somebody else holds, to be asked by whom."""
    found: dict[str, list[int]] = {}
    for name, post, failure in _failures(wanted, posted):
        if failure.how is How.TAKEN:
            found.setdefault(name, []).append(post.at.port)
    return {name: tuple(ports) for name, ports in found.items()}


def rivals(
    wanted: Preflight,
    posted: Mapping[str, Posted],
    holders: Mapping[str, tuple[PortHolder, ...]],
) -> Mapping[int, tuple[str, PortHolder | None]]:
    """Return the ranks in whose places another preflight listens: host, and holder if still there.

    Nobody where anything else is in the way too.
    """
    found: dict[int, tuple[str, PortHolder | None]] = {}
    for name, post, failure in _failures(wanted, posted):
        there = [one for one in holders.get(name, ()) if one.blocks(post.at.address, post.at.port)]
        if failure.how is not How.TAKEN or not all(one.tries_links for one in there):
            return {}
        found[post.rank] = name, next(iter(there), None)
    return found


def judged(
    wanted: Preflight,
    posted: Mapping[str, Posted],
    answers: Mapping[Link, Found],
    holders: Mapping[str, tuple[PortHolder, ...]],
    seconds: float,
) -> Matrix:
    """Return every link with what became of it; one that nobody answered for is not proven.

    *holders* are those of the `taken` ports, by host.
    """
    silent = Found(How.UNPROVEN, "its host did not say what came of it")
    tried = tuple(
        Tried(link, _known(link, wanted, posted) or _fair(link, answers.get(link, silent)))
        for link in wanted.links
    )
    blocked = tuple(
        _blocked(name, post, failure, holders.get(name, ()))
        for name, post, failure in _failures(wanted, posted)
        if failure.how.bad
    )
    return Matrix(tried, blocked, seconds, wanted.why_not, wanted.untried)


def _failures(wanted: Preflight, posted: Mapping[str, Posted]) -> Iterator[tuple[str, Post, Found]]:
    """Yield each post at which nobody can listen, with its host and why."""
    for name, trial in wanted.trials.items():
        for post in trial.posts:
            if failure := _failure(posted.get(name), post.rank):
                yield name, post, failure


def _blocked(host: str, post: Post, found: Found, holders: tuple[PortHolder, ...]) -> Blocked:
    if found.how is not How.TAKEN:
        return Blocked(post.rank, host, post.at, found, _ELSEWHERE)
    for holder in holders:
        if holder.blocks(post.at.address, post.at.port):
            named = Found(How.TAKEN, f"by {holder}")
            return Blocked(post.rank, host, post.at, named, holder.remedy)
    return Blocked(post.rank, host, post.at, found, "stop what holds it, or write another port")


def _failure(posted: Posted | None, rank: int) -> Found | None:
    return posted.failed.get(rank) if posted else None


def _fair(link: Link, found: Found) -> Found:
    """Return what an answer proves: a rank that runs elsewhere need not be up yet."""
    if link.ours or not found.how.bad:
        return found
    detail = f": {found.detail}" if found.detail else ""
    return Found(How.UNPROVEN, f"rank {link.listener} runs elsewhere; {found.how}{detail}")


def _known(link: Link, wanted: Preflight, posted: Mapping[str, Posted]) -> Found | None:
    """Return what is known of *link* without dialling it, None where it is to be dialled."""
    if link in wanted.spared:
        return Found(How.SPARED, wanted.spared[link])
    for host in (link.source, link.target) if link.ours else (link.source,):
        said = posted.get(host)
        if said is None or said.bare:
            return Found(How.UNPROVEN, f"{host}: {said.bare if said else 'it was not asked'}")
    return _failure(posted.get(link.target), link.listener) if link.ours else None
