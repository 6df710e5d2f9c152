"""Whether the group has to form anew, and why: a restart is always a restart of all ranks."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from rlxdeploy.facts.ranks import has_finished
from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.survey import JobSeen, RankSeen, Survey
from rlxdeploy.plan.diff import Wanted

RUNNING = frozenset({"active", "activating", "reloading"})

# So many files tell why; the plan lists them all below.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Cause:
    """Why one rank cannot go on as it is: *why* follows its name, `'s inputs changed`."""

    rank: int
    why: str


def causes(
    resolution: Resolution,
    wanted: Mapping[str, tuple[Wanted, ...]],
    survey: Survey,
    *,
    ends: bool = False,
) -> tuple[Cause, ...]:
    """Return every reason for which the group has to start, by rank; none if it may run on.

    Where the ranks' program *ends* by itself, a group is left alone of which all ranks have
    finished, or some have while the others are still up.
    """
    well = finished(resolution, survey) if ends and _all_well(resolution, survey) else ()
    found: dict[Cause, None] = {}
    for host in resolution.hosts:
        ranks = tuple(seat.rank for seat in resolution.on(host))
        job = survey.hosts[host].job
        found |= dict.fromkeys(one for one in _not_running(ranks, job) if one.rank not in well)
        if job.deployed is not None:
            changed = (one for one in wanted[host] if one.differs(job.files.get(one.path)))
            found |= dict.fromkeys(_changed(changed, ranks))
    return tuple(sorted(found, key=lambda cause: (cause.why, cause.rank)))


def finished(resolution: Resolution, survey: Survey) -> tuple[int, ...]:
    """Return the ranks of the group whose program has ended well by itself."""
    return tuple(rank for rank, one in _seen(resolution, survey) if one and has_finished(one))


def _all_well(resolution: Resolution, survey: Survey) -> bool:
    seen = [one for _, one in _seen(resolution, survey)]
    return all(one and (one.active == "active" or has_finished(one)) for one in seen)


def _seen(resolution: Resolution, survey: Survey) -> Iterator[tuple[int, RankSeen | None]]:
    for host in resolution.hosts:
        seen = {one.rank: one for one in survey.hosts[host].job.ranks}
        yield from ((seat.rank, seen.get(seat.rank)) for seat in resolution.on(host))


def _not_running(ranks: tuple[int, ...], job: JobSeen) -> Iterator[Cause]:
    seen = {one.rank: one for one in job.ranks}
    for rank in ranks:
        one = seen.get(rank)
        if one is None:
            yield Cause(rank, " is new")
        elif one.active not in RUNNING:
            yield Cause(rank, f" does not run ({_how(one)})")


def _how(seen: RankSeen) -> str:
    exited = "" if seen.exit_status is None else f", exit {seen.exit_status}"
    return f"{seen.active}{exited}"


def _changed(changed: Iterator[Wanted], ranks: tuple[int, ...]) -> Iterator[Cause]:
    """Yield one cause a rank, however many of its files have changed."""
    named: dict[int, list[str]] = {}
    for one in changed:
        # Each rank has files of its own under the same names: naming them says no more.
        own = one.file.path.startswith(("env/", "process/"))
        for rank in ranks:
            if rank in one.file.restarts:
                named.setdefault(rank, []).extend([] if own else [one.file.path])
    for rank, paths in named.items():
        yield Cause(rank, f"'s inputs changed{_which(paths)}")


def _which(paths: list[str]) -> str:
    more = len(paths) - _NAMED
    shown = ", ".join(paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f" ({shown})" if paths else ""


def because(
    found: tuple[Cause, ...], moves: Mapping[str, Collection[int]], *, first: bool
) -> tuple[str, ...]:
    """Return one line a reason, each saying what follows: the ranks by what they do (*moves*)."""
    follows = ", ".join(
        f"{named(ranks)} {_verb(word, ranks)}" for word, ranks in moves.items() if ranks
    )
    if first:
        return (f"nothing is deployed yet; {follows}",)
    lines: dict[str, set[int]] = {}
    for cause in found:
        lines.setdefault(cause.why, set()).add(cause.rank)
    return tuple(f"{named(ranks)}{_plural(why, ranks)}; {follows}" for why, ranks in lines.items())


def _verb(word: str, ranks: Collection[int]) -> str:
    return f"{word}s" if len(ranks) == 1 else word


def _plural(why: str, ranks: Collection[int]) -> str:
    if len(ranks) == 1:
        return why
    return why.replace(" is ", " are ", 1).replace(" does ", " do ", 1)


def named(ranks: Collection[int]) -> str:
    """Return `rank 2` or `ranks 0-2, 5`, the dash being an en dash."""
    ordered = sorted(ranks)
    spans: list[list[int]] = []
    for rank in ordered:
        if spans and rank == spans[-1][-1] + 1:
            spans[-1].append(rank)
        else:
            spans.append([rank])
    words = [str(s[0]) if len(s) == 1 else f"{s[0]}\N{EN DASH}{s[-1]}" for s in spans]
    return f"{'rank' if len(ordered) == 1 else 'ranks'} {', '.join(words)}"
