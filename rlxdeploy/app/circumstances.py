"""Who plans, from where, and what is remembered: the `Order` of every plan."""

import getpass
import secrets
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from rlxdeploy.edge.record import known_contents, new_deployment, read_record
from rlxdeploy.model.host import Tree
from rlxdeploy.model.job import Job
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.plan import Site
from rlxdeploy.model.record import Record
from rlxdeploy.model.survey import HostFacts, Survey
from rlxdeploy.model.vocabulary import Launch
from rlxdeploy.plan.order import Order
from rlxdeploy.resolve.launch import tree

# As long after the end of a join's wait as in an inventory that writes no revert_after.
GRACE_S = 60.0


def order_for(
    loaded: Loaded,
    survey: Survey,
    *,
    join_timeout: float | None = None,
    adopt: bool = False,
    deployment: str | None = None,
) -> Order:
    """Return the circumstances of a plan for *loaded* made now, here, by whoever runs this.

    *deployment* is the id where neither the record nor the hosts have one.  The key for secrets is
    drawn anew: what stands for one means something within this plan alone.
    """
    record = read_record(Path(loaded.path), loaded.job)
    job = loaded.inventory.job
    owner, controller, inventory = whoami(), socket.gethostname(), str(loaded.path)
    remembered = record.deployment if record else _remembered(survey, owner, inventory)
    return Order(
        deployment=remembered or deployment or new_deployment(),
        owner=owner,
        controller=controller,
        inventory=inventory,
        now=time.time(),
        ready=job.effective_ready.value,
        join_timeout=job.join_timeout if join_timeout is None else join_timeout,
        boot=job.effective_boot,
        revert_after=revert_after(job, join_timeout),
        adopt=adopt,
        ends=not job.is_builtin,
        left={**_recorded(record), **_deployed(loaded, survey)},
        generation=record.generation if record else 0,
        known=known_contents(Path(loaded.path), loaded.job),
        secret=secrets.token_bytes(32),
    )


def revert_after(job: Job, join_timeout: float | None) -> float:
    """Return in how many seconds hosts go back: never before a wait of *join_timeout* has ended."""
    if join_timeout is None:
        return job.effective_revert_after
    return max(job.revert_after or 0.0, join_timeout + GRACE_S)


def sites(loaded: Loaded, survey: Survey) -> Mapping[str, Site]:
    """Return where the job lies on each surveyed host that has it, as it says or as recorded."""
    recorded = _recorded(read_record(Path(loaded.path), loaded.job))
    found = {**recorded, **_deployed(loaded, survey)}
    return {name: site for name, site in found.items() if name in survey.hosts}


def locked_sites(loaded: Loaded, survey: Survey) -> Mapping[str, Site]:
    """Return where the job is locked: where it lies, or where the first apply would put it."""
    known = sites(loaded, survey)
    locked = {name: facts for name, facts in survey.hosts.items() if facts.job.locked_by}
    return {name: known.get(name) or _likely(loaded, facts) for name, facts in locked.items()}


def _likely(loaded: Loaded, facts: HostFacts) -> Site:
    launch = Launch(facts.platform.launches[0])
    return Site(facts.host, tree(loaded.job, launch, facts.platform), launch)


def whoami() -> str:
    """Return the login name, or the number of the user where it has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _recorded(record: Record | None) -> Mapping[str, Site]:
    hosts = record.hosts if record else ()
    return {one.host.name: Site(one.host, one.tree, one.launch) for one in hosts}


def _deployed(loaded: Loaded, survey: Survey) -> Mapping[str, Site]:
    """Return where the job lies on the hosts that say they have it."""
    return {
        name: Site(facts.host, _tree(loaded.job, mark.launch, facts), mark.launch)
        for name, facts in survey.hosts.items()
        if (mark := facts.job.deployed) is not None
    }


def _remembered(survey: Survey, owner: str, inventory: str) -> str | None:
    """Return the id that the hosts hold for this very inventory, where the record is lost."""
    marks = [facts.job.deployed for facts in survey.hosts.values() if facts.job.deployed]
    ours = {
        mark.deployment
        for mark in marks
        if (mark.owner, mark.controller, mark.inventory) == (owner, socket.gethostname(), inventory)
    }
    return ours.pop() if len(ours) == 1 else None


def _tree(job: str, launch: str, facts: HostFacts) -> Tree:
    return tree(job, Launch(launch), facts.platform)
