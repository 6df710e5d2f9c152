"""Hosts outside of the scope that do not answer: what the last apply knew of them."""

from dataclasses import replace
from pathlib import Path

from rlxdeploy.app.scope import members_of
from rlxdeploy.edge.record import read_record
from rlxdeploy.edge.remembered import remembered_facts
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.record import HostRecord, Record
from rlxdeploy.model.scope import Scope
from rlxdeploy.model.survey import Deployed, HostFacts, JobSeen, Survey


def with_recalled(loaded: Loaded, survey: Survey, scope: Scope) -> Survey:
    """Return *survey* with the silent hosts that *scope* does not mean, as far as they are known.

    Raises UsageError where *scope* means nobody.
    """
    record = read_record(Path(loaded.path), loaded.job)
    if not survey.failed or record is None:
        return survey
    known = remembered_facts(Path(loaded.path), loaded.job)
    ranks = {row.rank: (row.host, row.node) for row in record.ranks if row.managed}
    members = members_of(loaded, ranks, (*survey.hosts, *survey.failed))
    meant = {one.host for one in scope.choose(members)}
    hosts = {
        one.host.name: _as_applied(known[one.host.name], one, record)
        for one in record.hosts
        if one.host.name in survey.failed.keys() - meant and one.host.name in known
    }
    return replace(survey, hosts={**survey.hosts, **hosts}, recalled=tuple(sorted(hosts)))


def _as_applied(facts: HostFacts, host: HostRecord, record: Record) -> HostFacts:
    mark = Deployed(
        deployment=record.deployment,
        job=record.job,
        release=record.release,
        generation=record.generation,
        plan="",
        launch=host.launch,
        world=len(record.ranks),
        ranks=host.ranks,
        controller="",
        owner="",
        inventory="",
        applied_at=0.0,
    )
    return replace(facts, host=host.host, job=JobSeen(deployed=mark, current=record.release))
