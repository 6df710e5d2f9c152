"""The output of the ranks, one after the other or as it comes, with the rank before each line."""

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlxdeploy.app.lab import Lab
from rlxdeploy.app.lastwords import kept_logs
from rlxdeploy.app.look import Known, look
from rlxdeploy.app.say import Say
from rlxdeploy.edge.logs import READING, LogQuery, follow_log, read_log
from rlxdeploy.edge.pool import Pool
from rlxdeploy.edge.session import OpenSession
from rlxdeploy.errors import HostError, Refused, RlxDeployError, UsageError
from rlxdeploy.model.host import Host
from rlxdeploy.model.scope import ALL, Scope
from rlxdeploy.model.vocabulary import Launch
from rlxdeploy.plan.epoch import named
from rlxdeploy.resolve.launch import tree

# A follower that nobody ends gives up after a day rather than never.
LONGEST_FOLLOW_S = 86_400.0

# For one rank's last lines, connecting included.
READ_S = 30.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a rank's output."""

    rank: int
    host: str
    text: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lines to show: the last *lines* of each rank, of *ranks* only unless empty."""

    lines: int = 20
    since: str = ""
    ranks: tuple[int, ...] = ()
    scope: Scope = ALL


@dataclass(frozen=True, slots=True)
class Unread:
    """Why the output of *rank* is not shown; of None, that of any rank that its host may have."""

    rank: int | None
    error: HostError

    def __str__(self) -> str:
        return str(self.error) if self.rank is None else f"rank {self.rank}: {self.error}"


@dataclass(frozen=True, slots=True)
class Logs:
    """Lines in rank order, and what is lacking: several ranks of one host may fail apart."""

    lines: tuple[Line, ...]
    failed: tuple[Unread, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """The output of one rank: where it is, and which lines are wanted."""

    host: Host
    query: LogQuery


def logs(inventory: Path, wanted: Wanted, lab: Lab, say: Say) -> Logs:
    """Return the last lines of every rank; one host's failure is in the answer.

    Raises RlxDeployError where no rank is deployed, and UsageError for what `Wanted` cannot mean.
    """
    known = look(inventory, lab, say, wanted.scope)
    sources = _sources(known, wanted, follow=False)
    read = read_all(sources, lab.open_session, Pool(lab.forks, READ_S))
    if wanted.since and len(read.failed) == len(sources):
        _check_time(one.error for one in read.failed)
    return replace(read, failed=(*_silent(known), *read.failed))


def read_all(sources: Sequence[Source], open_session: OpenSession, pool: Pool) -> Logs:
    """Return the last lines of every source, or why there are none; each has a rank of its own."""
    named_sources = {f"rank {source.query.rank}": source for source in sources}
    outcomes = pool.on_hosts(
        lambda source, deadline: _read(source, open_session, deadline), named_sources, READING
    )
    lines = (line for few in outcomes.done.values() for line in few)
    failed = (_unread(name, named_sources[name], why) for name, why in outcomes.failed.items())
    return Logs(tuple(lines), tuple(failed))


def _unread(name: str, source: Source, error: HostError) -> Unread:
    if error.host == name:
        # The pool has given it up, and knows it by no other name.
        error = HostError(source.host.name, error.doing, error.why, error.remedy)
    return Unread(source.query.rank, error)


def _read(source: Source, open_session: OpenSession, deadline: float) -> tuple[Line, ...]:
    patience = max(0.0, deadline - time.monotonic())
    read = read_log(open_session, source.host, source.query, patience)
    return tuple(Line(source.query.rank, source.host.name, text) for text in read)


def _silent(known: Known) -> Iterator[Unread]:
    for name in known.survey.failed:
        yield Unread(None, known.survey.error_of(name))


def follow(inventory: Path, wanted: Wanted, lab: Lab, say: Say) -> Iterator[Line | Unread]:
    """Yield the lines of all ranks as they come, until interrupted or every source has ended.

    Raises what `logs` does.
    """
    known = look(inventory, lab, say, wanted.scope)
    sources = _sources(known, wanted, follow=True)
    if wanted.since:
        _ask_for_time(sources[0], lab)
    yield from _silent(known)
    arrived: queue.Queue[Line | Unread | None] = queue.Queue()
    deadline = time.monotonic() + LONGEST_FOLLOW_S
    for source in sources:
        threading.Thread(target=_pump, args=(source, lab, deadline, arrived), daemon=True).start()
    ended = 0
    while ended < len(sources):
        line = arrived.get()
        if line is None:
            ended += 1
        else:
            yield line


def _ask_for_time(source: Source, lab: Lab) -> None:
    """Raise UsageError where the host cannot read the time from which a log is to be followed."""
    once = replace(source, query=replace(source.query, lines=1, follow=False))
    try:
        _read(once, lab.open_session, time.monotonic() + READ_S)
    except HostError as error:
        _check_time([error])


def _check_time(errors: Iterable[HostError]) -> None:
    """Raise UsageError where every host has refused: what they were asked for is no time."""
    refused = [*errors]
    if refused and all(isinstance(one, Refused) for one in refused):
        first = refused[0]
        what = f"--since is no time that {first.host} can read: {first.why}"
        raise UsageError(f'{what}; write "10 min ago", "today" or "2026-11-30 18:00"')


def _pump(
    source: Source, lab: Lab, deadline: float, arrived: "queue.Queue[Line | Unread | None]"
) -> None:
    try:
        for text in follow_log(lab.open_session, source.host, source.query, deadline):
            arrived.put(Line(source.query.rank, source.host.name, text))
    except HostError as error:
        arrived.put(Unread(source.query.rank, error))
    finally:
        arrived.put(None)


def _sources(known: Known, wanted: Wanted, *, follow: bool) -> tuple[Source, ...]:
    found = {}
    for facts in known.survey.hosts.values():
        if (deployed := facts.job.deployed) is None:
            continue
        launch = Launch(deployed.launch)
        place = tree(known.loaded.job, launch, facts.platform)
        for rank in filter(known.means, deployed.ranks):
            query = LogQuery(place, launch, rank, wanted.lines, follow, wanted.since)
            found[rank] = Source(facts.host, query)
    _check(known, wanted, found)
    return tuple(found[rank] for rank in sorted(found) if rank in (wanted.ranks or found))


def _check(known: Known, wanted: Wanted, found: Mapping[int, Source]) -> None:
    """Raise where nothing is there to show, or not what was asked for.

    Where hosts have not answered it may be there: then an ExceptionGroup of Unreachable.
    """
    if not found:
        if silent := [*_silent(known)]:
            raise ExceptionGroup("no rank is to be seen", [one.error for one in silent])
        job, kept = known.loaded.job, kept_logs(Path(known.loaded.path), known.loaded.job)
        more = f"the last words of its ranks are in {kept}" if kept.is_dir() else "apply first"
        raise RlxDeployError(f"no rank of {job} is deployed; {more}")
    if missing := [rank for rank in wanted.ranks if rank not in found]:
        raise UsageError(f"--rank: {named(missing)}: not deployed; there are {named(found)}")
    timeless = [rank for rank, one in found.items() if one.query.launch == Launch.PROCESS]
    if wanted.since and timeless:
        what = f"--since: {named(timeless)} log without times, being started by process"
        raise UsageError(f"{what}; use -n for the last lines")
