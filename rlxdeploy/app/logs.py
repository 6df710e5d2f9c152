"""The output of the ranks, one after the other or as it comes, with the rank before each line."""

import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlxdeploy.app.lab import Lab
from rlxdeploy.app.look import Known, look
from rlxdeploy.app.say import Say
from rlxdeploy.edge.logs import LogQuery, follow_log, read_log
from rlxdeploy.errors import HostError, RlxDeployError
from rlxdeploy.model.host import Host
from rlxdeploy.model.vocabulary import Launch
from rlxdeploy.resolve.launch import tree

# A follower that nobody ends gives up after a day rather than never.
LONGEST_FOLLOW_S = 86_400.0


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


@dataclass(frozen=True, slots=True)
class _Source:
    host: Host
    query: LogQuery


def logs(inventory: Path, wanted: Wanted, lab: Lab, say: Say) -> tuple[Line, ...]:
    """Return the last lines of every rank, in rank order; raises RlxDeployError without one."""
    lines = []
    for source in _sources(look(inventory, lab, say), wanted, follow=False):
        read = read_log(lab.open_session, source.host, source.query)
        lines += [Line(source.query.rank, source.host.name, text) for text in read]
    return tuple(lines)


def follow(inventory: Path, wanted: Wanted, lab: Lab, say: Say) -> Iterator[Line | HostError]:
    """Yield the lines of all ranks as they come, until interrupted or every source has ended."""
    sources = _sources(look(inventory, lab, say), wanted, follow=True)
    arrived: queue.Queue[Line | HostError | None] = queue.Queue()
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


def _pump(
    source: _Source, lab: Lab, deadline: float, arrived: "queue.Queue[Line | HostError | None]"
) -> None:
    try:
        for text in follow_log(lab.open_session, source.host, source.query, deadline):
            arrived.put(Line(source.query.rank, source.host.name, text))
    except HostError as error:
        arrived.put(error)
    finally:
        arrived.put(None)


def _sources(known: Known, wanted: Wanted, *, follow: bool) -> tuple[_Source, ...]:
    found = []
    for facts in known.survey.hosts.values():
        deployed = facts.job.deployed
        if deployed is None:
            continue
        launch = Launch(deployed.launch)
        place = tree(known.loaded.job, launch, facts.platform)
        found += [
            _Source(facts.host, LogQuery(place, launch, rank, wanted.lines, follow, wanted.since))
            for rank in deployed.ranks
            if not wanted.ranks or rank in wanted.ranks
        ]
    if not found:
        what = f"no rank of {known.loaded.job} is deployed"
        raise RlxDeployError(f"{what} here; see: rlxdeploy status")
    return tuple(sorted(found, key=lambda source: source.query.rank))
