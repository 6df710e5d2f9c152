"""Who there is to choose from with `--limit` and `--exclude`."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rlxdeploy.app.validate import load
from rlxdeploy.edge.journal import failed_last, open_journal
from rlxdeploy.errors import HostError
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.scope import FAILED, Member, Scope
from rlxdeploy.resolve.entries import Entry, entries


def members_of(
    loaded: Loaded, ranks: Mapping[int, tuple[str, str]], hosts: Iterable[str]
) -> tuple[Member, ...]:
    """Return a member for each rank, by its host and node, and one for each other host of *hosts*.

    Raises RecordError where the journal, which knows who failed, cannot be read.
    """
    found = entries(loaded)
    failed = failed_last(Path(loaded.path), loaded.job)
    seated = {host for host, _ in ranks.values()}
    idle = [host for host in dict.fromkeys(hosts) if host not in seated]
    return (
        *(_member(rank, *place, found, failed) for rank, place in sorted(ranks.items())),
        *(_member(None, host, "", found, failed) for host in idle),
    )


def _member(
    rank: int | None, host: str, node: str, found: Iterable[Entry], failed: frozenset[str]
) -> Member:
    own = [one for one in found if one.name == node]
    own = own or [one for one in found if one.host.name == host]
    names = {host, *([node] if node else []), *(name for one in own for name in _called(one))}
    tags = frozenset(tag for one in own for tag in one.node.tags)
    return Member(host, rank, frozenset(names), tags, failed=bool(names & failed))


def _called(entry: Entry) -> Iterator[str]:
    yield entry.name
    if entry.node.managed:
        yield entry.host.name
    if entry.node.name:
        yield entry.node.name


def named_failed(scope: Scope, inventory: Path, job: str) -> Scope:
    """Return *scope* with the hosts that `@failed` means now, by name: the next run changes whom.

    Raises RecordError where the journal cannot be read.
    """
    if FAILED not in (*scope.limit, *scope.exclude):
        return scope
    failed = sorted(failed_last(inventory, job))
    return Scope(_spelled(scope.limit, failed), _spelled(scope.exclude, failed))


def _spelled(terms: tuple[str, ...], failed: list[str]) -> tuple[str, ...]:
    return tuple(name for term in terms for name in (failed if term == FAILED else [term]))


@contextmanager
def noted_if_silent(verb: str, inventory: Path) -> Iterator[None]:
    """Have the journal say which hosts kept *verb* from being begun: `@failed` means them then.

    What the body raises is raised; and RecordError where the journal cannot be written.
    """
    try:
        yield
    except ExceptionGroup as group:
        failed = sorted(one.host for one in group.exceptions if isinstance(one, HostError))
        if failed:
            journal = open_journal(inventory, load(inventory).job)
            journal.write("end", verb=verb, how="not begun", failed=failed)
        raise
