"""The use case `trust`: make the keys of hosts known that a person has compared.

It goes in rounds: a host behind others is asked once every hop before it is trusted.  All keys of
a round are agreed to together, and a hop that several hosts share is shown once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from rlxdeploy.app.say import Doing, Say
from rlxdeploy.app.validate import load
from rlxdeploy.edge.pool import Pool
from rlxdeploy.edge.ssh.hosts import SshHosts
from rlxdeploy.edge.ssh.overrides import Overrides
from rlxdeploy.edge.ssh.trust import NewKey, next_unknown, remember
from rlxdeploy.errors import HostError
from rlxdeploy.facts.ssh_keys import PublicKey
from rlxdeploy.model.host import Host

DOING = "trust"

# Raises where the person does not agree; nothing of the round is remembered then.
Agree = Callable[[Sequence[NewKey]], None]

# Shows how far a round is, and nothing while a person is asked.
Progress = Callable[[], AbstractContextManager[Say]]


@dataclass(frozen=True, slots=True)
class Added:
    """A key that is known from now on, and the file where it stands."""

    new: NewKey
    file: Path


@dataclass(slots=True)
class Trust:
    """What came of it: keys *added*, hosts that can be reached now, and why others cannot."""

    added: list[Added] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)
    failed: dict[str, HostError] = field(default_factory=dict)


def overrides_of(inventory: Path | None) -> Overrides:
    """Return what the inventory says about SSH; without one, the SSH configuration decides."""
    if inventory is None:
        return Overrides()
    return Overrides.of(load(inventory).inventory.ssh, inventory.resolve().parent)


def trust(names: Sequence[str], overrides: Overrides, agree: Agree, progress: Progress) -> Trust:
    """Make the way to each SSH host of *names* known, hop by hop, as far as *agree* goes along.

    One host's failure is in the answer: that it cannot be reached, or shows a key other than the
    known one, which is never replaced.
    """
    done = Trust()
    waiting = {name: Host(name, name) for name in names}
    with SshHosts(overrides) as hosts:
        while waiting:
            hosts.expect(waiting.values())
            with progress() as say:
                say(Doing(DOING, len(done.trusted), len(names), tuple(waiting)))
                unknown = _ask(hosts, waiting, done)
            keys = _distinct(unknown.values())
            if keys:
                agree(keys)
            _remember(hosts, keys, done)
            waiting = {name: waiting[name] for name in unknown if name not in done.failed}
    return done


def _ask(hosts: SshHosts, waiting: Mapping[str, Host], done: Trust) -> dict[str, NewKey]:
    """Return the next unknown key of each host that has one, and sort the other hosts out."""
    pool = Pool(hosts.overrides.forks, hosts.opening)
    outcomes = pool.on_hosts(
        lambda host, deadline: next_unknown(hosts, host, deadline), waiting, DOING
    )
    done.failed |= outcomes.failed
    done.trusted += [name for name, new in outcomes.done.items() if new is None]
    unknown = {name: new for name, new in outcomes.done.items() if new is not None}
    added = {(one.new.name, one.new.key): one.file for one in done.added}
    for name, new in unknown.items():
        if file := added.get((new.name, new.key)):
            why = f"its key stands in {file} now and is not found there"
            done.failed[name] = HostError(name, DOING, why, "see UserKnownHostsFile")
    return {name: new for name, new in unknown.items() if name not in done.failed}


def _distinct(found: Iterable[NewKey]) -> list[NewKey]:
    first: dict[tuple[str, PublicKey], NewKey] = {}
    for new in found:
        first.setdefault((new.name, new.key), new)
    return [*first.values()]


def _remember(hosts: SshHosts, keys: Sequence[NewKey], done: Trust) -> None:
    for new in keys:
        try:
            done.added.append(Added(new, remember(hosts, new)))
        except HostError as error:
            done.failed[error.host] = error
