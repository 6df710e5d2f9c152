"""The use case `unlock`: end whoever holds a job's lock, and have it free."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlxdeploy.app.circumstances import locked_sites
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.look import look
from rlxdeploy.app.say import Say
from rlxdeploy.edge.pool import Pool
from rlxdeploy.edge.unlock import unlock_host
from rlxdeploy.errors import HostError
from rlxdeploy.model.outcome import Outcomes
from rlxdeploy.model.plan import Site
from rlxdeploy.model.scope import ALL, Scope

ALLOWANCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Locks:
    """Where the job of an inventory is locked, and by whom.

    *asked* hosts answered, *unasked* ones did not.
    """

    job: str
    asked: tuple[str, ...]
    sites: Mapping[str, Site]
    holders: Mapping[str, str]
    unasked: Mapping[str, HostError]


def find_locks(inventory: Path, lab: Lab, say: Say, scope: Scope = ALL) -> Locks:
    """Return who holds the job's lock on each host of *scope*; raises UsageError for nobody."""
    known = look(inventory, lab, say, scope)
    where = locked_sites(known.loaded, known.survey)
    holders = {name: known.survey.hosts[name].job.locked_by for name in where}
    asked = tuple(known.survey.hosts)
    return Locks(known.loaded.job, asked, where, holders, known.survey.errors)


def unlock(locks: Locks, lab: Lab) -> Outcomes[str]:
    """End the holders, which undo what they had staged, and return who they were, by host."""
    pool = Pool(lab.forks, ALLOWANCE_S)
    return pool.on_hosts(
        lambda site, deadline: unlock_host(site, lab.open_session, deadline),
        locks.sites,
        "unlock",
    )
