"""How a job is: its ranks as the hosts have them, seen through no plan."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import Say
from rlxdeploy.app.scope import members_of
from rlxdeploy.app.secrets import looked_at
from rlxdeploy.app.survey import ask, whom
from rlxdeploy.app.validate import load
from rlxdeploy.edge.record import read_record
from rlxdeploy.errors import HostError
from rlxdeploy.facts.views import blindness
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.plan import Drift, RankRow
from rlxdeploy.model.record import Record
from rlxdeploy.model.scope import ALL, Member, Scope
from rlxdeploy.model.survey import HostFacts, RankSeen, Survey
from rlxdeploy.model.vocabulary import Ready
from rlxdeploy.plan.drift import drift
from rlxdeploy.plan.mark import readiness

MISSING = "missing"
FAILED = "failed"
EXITED = "exited"
_NOBODY = Survey({})


@dataclass(frozen=True, slots=True)
class Known:
    """A job as the controller knows it, and as its hosts say it is.

    Where not everybody is meant, *chosen* are those of *members* that are, and the survey is of
    their hosts alone.
    """

    loaded: Loaded
    record: Record | None
    survey: Survey
    members: tuple[Member, ...] = ()
    chosen: tuple[Member, ...] | None = None

    @property
    def ranks(self) -> frozenset[int] | None:
        """The ranks that are meant, None for all."""
        if self.chosen is None:
            return None
        return frozenset(one.rank for one in self.chosen if one.rank is not None)

    def means(self, rank: int) -> bool:
        """Tell whether *rank* is one of those that are meant."""
        return self.ranks is None or rank in self.ranks


@dataclass(frozen=True, slots=True)
class RankStatus:
    """One rank now; *uptime* in seconds, 0 where it does not run.

    *state* is systemd's word for the instance, or `missing` where no host has the rank.  *epoch* is
    what the ranks of the built-in node agreed to call their group; of a program of a person's own,
    which agrees on none, it is RLX_PLAN, which is new after each apply that restarts the group.
    *blind* says which device it runs without seeing, "" for none.
    """

    rank: int
    host: str
    device: str
    address: str
    state: str
    joined: bool
    status: str
    uptime: float
    restarts: int
    epoch: str
    release: str
    digest: str
    pid: int
    exit_status: int | None = None
    blind: str = ""

    @property
    def broken(self) -> bool:
        """Whether it will not come up by itself any more."""
        return self.state == FAILED

    @property
    def finished(self) -> bool:
        """Whether its program has ended well; one that was stopped is inactive."""
        return self.state == EXITED and self.exit_status == 0


@dataclass(frozen=True, slots=True)
class Status:
    """A job's ranks in order, and the hosts that did not answer; *whole* if all ranks are meant.

    *proven*: a rank that is ready has said that the group has formed, and does not just run.
    *drift* is what is not as the last apply left it.
    """

    job: str
    world: int
    ranks: tuple[RankStatus, ...]
    failed: Mapping[str, HostError]
    whole: bool = True
    drift: tuple[Drift, ...] = ()
    proven: bool = True

    @property
    def deployed(self) -> bool:
        return bool(self.ranks)

    @property
    def joined(self) -> int:
        """Return how many ranks are in the group."""
        return sum(rank.joined for rank in self.ranks)


def look(inventory: Path, lab: Lab, say: Say, scope: Scope = ALL) -> Known:
    """Survey the job's machines: the inventory's, and those that only the record still names.

    Of a *scope* that is not all, only the machines that it can mean are asked.  Raises UsageError
    where it means nobody.
    """
    loaded = load(inventory)
    lab.follow(loaded)
    record = read_record(inventory, loaded.job)
    targets = whom(loaded, lab)
    if scope.is_all:
        return Known(loaded, record, looked_at(ask(targets, lab, say)))
    everybody = tuple(one.host.name for one in targets.targets)
    if not scope.names_ranks:
        hosts = {one.host for one in scope.choose(_members(loaded, record, everybody))}
        few = tuple(one for one in targets.targets if one.host.name in hosts)
        targets = replace(targets, targets=few)
    survey = looked_at(ask(targets, lab, say))
    members = _members(loaded, record, everybody, survey)
    chosen = scope.choose(members)
    return Known(loaded, record, _of(survey, members, chosen), members, chosen)


def _members(
    loaded: Loaded, record: Record | None, hosts: Iterable[str], survey: Survey = _NOBODY
) -> tuple[Member, ...]:
    """Return who there is as the record knows it, and where hosts have said more, as they say."""
    rows = [row for row in (record.ranks if record else ()) if row.managed]
    ranks = {row.rank: (row.host, row.node) for row in rows}
    for name, facts in survey.hosts.items():
        for rank in facts.job.deployed.ranks if facts.job.deployed else ():
            known = ranks.get(rank, ("", ""))
            ranks[rank] = known if known[0] == name else (name, "")
    return members_of(loaded, ranks, hosts)


def _of(survey: Survey, members: Iterable[Member], chosen: Iterable[Member]) -> Survey:
    """Return the survey of the chosen hosts, and of those that may have what is chosen."""
    known = {one.host for one in members if one.rank is not None}
    meant = {one.host for one in chosen}
    return replace(
        survey,
        hosts={name: facts for name, facts in survey.hosts.items() if name in meant},
        failed={
            name: why for name, why in survey.failed.items() if name in meant or name not in known
        },
    )


def status(inventory: Path, lab: Lab, say: Say, scope: Scope = ALL) -> Status:
    """Return how every rank of *scope* is."""
    return status_of(look(inventory, lab, say, scope))


def status_of(known: Known) -> Status:
    """Return the ranks of the record and of the hosts, each once, in order."""
    rows = {row.rank: row for row in (known.record.ranks if known.record else ())}
    seen = {
        rank.rank: (facts, rank) for facts in known.survey.hosts.values() for rank in _shown(facts)
    }
    worlds = [
        facts.job.deployed.world for facts in known.survey.hosts.values() if facts.job.deployed
    ]
    ranks = tuple(
        _here(rows.get(rank), *seen[rank]) if rank in seen else _missing(rows[rank])
        for rank in sorted(rows.keys() | seen.keys())
        if known.means(rank) and (rank in seen or rows[rank].managed)
    )
    return Status(
        job=known.loaded.job,
        world=max(worlds, default=len(rows)),
        ranks=ranks,
        failed=known.survey.errors,
        whole=known.chosen is None,
        drift=drift({name: facts.job for name, facts in known.survey.hosts.items()}),
        proven=_ready(known) == Ready.NOTIFY,
    )


def _ready(known: Known) -> str:
    """Return how the deployed ranks say that they are up: the inventory may have changed since."""
    marks = [facts.job.deployed for facts in known.survey.hosts.values()]
    return readiness(marks, known.loaded.inventory.job.effective_ready.value)


def _shown(facts: HostFacts) -> Iterator[RankSeen]:
    """Yield the instances of what is deployed, and whatever else still runs."""
    deployed = facts.job.deployed.ranks if facts.job.deployed else ()
    seen = {rank.rank: rank for rank in facts.job.ranks}
    for rank in sorted({*deployed, *seen}):
        if rank in deployed or seen[rank].pid:
            yield seen.get(rank, RankSeen(rank, "inactive"))


def _here(row: RankRow | None, facts: HostFacts, seen: RankSeen) -> RankStatus:
    runs = bool(seen.pid) and seen.active in ("active", "activating")
    node = seen.node if runs else {}
    return RankStatus(
        rank=seen.rank,
        host=facts.host.name,
        device=row.device if row else "",
        address=row.address if row else "",
        state=seen.active,
        joined=seen.ready,
        status=seen.status,
        uptime=max(0.0, facts.platform.clock - seen.since) if runs and seen.since else 0.0,
        restarts=seen.restarts,
        epoch=_text(node, "epoch") or (_plan(facts, node) if runs and seen.ready else ""),
        release=facts.job.current,
        digest=_text(node, "digest"),
        pid=seen.pid,
        exit_status=seen.exit_status,
        blind=blindness(row.device, seen) if row and runs else "",
    )


def _plan(facts: HostFacts, node: Mapping[str, object]) -> str:
    """Return the RLX_PLAN that a rank runs under: the nearest to an epoch that a program has."""
    return _text(node, "plan") or (facts.job.deployed.plan if facts.job.deployed else "")


def _missing(row: RankRow) -> RankStatus:
    return RankStatus(
        rank=row.rank,
        host=row.host,
        device=row.device,
        address=row.address,
        state=MISSING,
        joined=False,
        status="",
        uptime=0.0,
        restarts=0,
        epoch="",
        release="",
        digest="",
        pid=0,
    )


def _text(node: Mapping[str, object], key: str) -> str:
    value = node.get(key)
    return value if isinstance(value, str) else ""
