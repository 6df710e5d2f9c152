"""The machines of a job and what they say: written, found and remembered ones."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import Doing, Say
from rlxdeploy.app.scope import members_of
from rlxdeploy.app.secrets import private
from rlxdeploy.edge.files import read_text
from rlxdeploy.edge.gather import looked_up
from rlxdeploy.edge.record import read_record
from rlxdeploy.edge.remembered import remembered_platforms
from rlxdeploy.edge.survey import survey_hosts
from rlxdeploy.errors import Finding, InventoryError, PasswordRefused, Place
from rlxdeploy.facts.caps import NodeCaps, read_workers
from rlxdeploy.facts.script import Patience
from rlxdeploy.model.codec import load_survey
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.record import HostRecord
from rlxdeploy.model.scope import ALL, Scope
from rlxdeploy.model.silence import Silence
from rlxdeploy.model.survey import HostFacts, Platform, Survey
from rlxdeploy.model.targets import Enquiry, Target, Targets
from rlxdeploy.model.vocabulary import Become
from rlxdeploy.resolve.controller import names_to_look_up
from rlxdeploy.resolve.discovery import asked_again, gently, settled, with_nodes
from rlxdeploy.resolve.sift import Sifted, excluded, names_excluded
from rlxdeploy.resolve.targets import targets
from rlxdeploy.resolve.workers import with_workers

# Loading numpy or torch from a cold disk takes half a minute, reading 64 MiB from a slow one more.
_MEASURING = Patience(quick=4.0, slow=90.0)


@dataclass(frozen=True, slots=True)
class Extra:
    """What a survey asks the inventory's machines besides what a plan needs to know.

    *bench* has them measured; *folders* are some more to be asked for their free space.  Of a
    *scope* that is not all, only those are asked that it means.
    """

    bench: bool = False
    folders: tuple[str, ...] = ()
    scope: Scope = ALL


NOTHING = Extra()


def surveyed(
    loaded: Loaded, saved: Path | None, lab: Lab, say: Say, extra: Extra = NOTHING
) -> tuple[Loaded, Survey]:
    """Return the saved survey, or ask every machine of the job, written and found.

    The inventory comes back with a node for each found host that is to be one.  *saved* may also
    hold what upstream's workers say of themselves, in place of a survey.  No digest of a survey
    gives a secret away.
    """
    text = "" if saved is None else read_text(saved).content
    if said := _workers(text, saved):
        whole = with_workers(loaded, said)
        return whole, Survey({}, names=looked_up(names_to_look_up(whole)))
    survey = _asked(loaded, lab, say, extra) if saved is None else load_survey(text, str(saved))
    return private(settled(loaded, survey, excluded(loaded, survey.names)), survey)


def _workers(text: str, saved: Path | None) -> Mapping[str, NodeCaps] | None:
    try:
        return read_workers(text)
    except ValueError as error:
        what = f"not whole NodeCaps: {error}"
        raise InventoryError([Finding(what, Place(str(saved)))]) from None


def _asked(loaded: Loaded, lab: Lab, say: Say, extra: Extra) -> Survey:
    """Search, and ask everybody; found hosts first without sudo, then those that will be nodes."""
    recorded, wanted = _recorded(loaded), loaded.inventory.discover
    known = remembered_platforms(Path(loaded.path), loaded.job)
    search = Sifted() if wanted.is_empty else _search(loaded, lab, say, recorded)
    whole = with_nodes(loaded, search.found)
    strangers = {one.ssh for one in search.found} - {one.host.name for one in recorded}
    first = ask(gently(_with_known(whom(whole, lab, extra), known), strangers), lab, say)
    names = (*names_to_look_up(whole), *names_excluded(loaded))
    survey = replace(
        first, names=looked_up(names), found=tuple(search.found), notices=tuple(search.notices)
    )
    chosen = settled(loaded, survey, excluded(loaded, survey.names))
    again = asked_again(whom(chosen, lab, extra), survey, strangers)
    if not again.targets:
        return survey
    second = ask(again, lab, say)
    hosts = {name: facts for name, facts in survey.hosts.items() if name not in second.failed}
    return replace(
        survey,
        hosts=hosts | {**second.hosts},
        failed={**survey.failed, **second.failed},
        silent={**survey.silent, **second.silent},
    )


def _search(loaded: Loaded, lab: Lab, say: Say, recorded: Sequence[HostRecord]) -> Sifted:
    # Imported when needed: an inventory that names all of its hosts does without.
    from rlxdeploy.app.discover import discover  # noqa: PLC0415 - as said above

    return discover(loaded, lab, say, recorded)


def whom(loaded: Loaded, lab: Lab, extra: Extra = NOTHING) -> Targets:
    """Return the machines of the inventory, then those that only the record still names.

    Raises UsageError where *extra* means nobody.
    """
    written = _with_folders(targets(loaded, lab.interpreter, bench=extra.bench), extra.folders)
    names = {target.host.name for target in written.targets}
    sudo = loaded.inventory.ssh.become is not Become.NONE
    left = tuple(
        Target(one.host, Enquiry(job=loaded.job, sudo=sudo))
        for one in _recorded(loaded)
        if one.host.name not in names
    )
    everybody = (*written.targets, *left)
    return Targets(_meant(loaded, everybody, extra.scope), written.notices)


def _meant(loaded: Loaded, everybody: tuple[Target, ...], scope: Scope) -> tuple[Target, ...]:
    if scope.is_all:
        return everybody
    ranks = {rank: (one.host.name, "") for one in _recorded(loaded) for rank in one.ranks}
    members = members_of(loaded, ranks, (one.host.name for one in everybody))
    hosts = {one.host for one in scope.choose(members)}
    return tuple(one for one in everybody if one.host.name in hosts)


def _with_known(asked: Targets, known: Mapping[str, Platform]) -> Targets:
    """Return *asked* with what the last apply knew of each host."""
    whole = (
        replace(one, enquiry=replace(one.enquiry, known=known.get(one.host.name)))
        for one in asked.targets
    )
    return replace(asked, targets=tuple(whole))


def _with_folders(written: Targets, folders: tuple[str, ...]) -> Targets:
    """Return *written* with *folders* behind those that each enquiry has already."""

    def more(one: Target) -> Target:
        asked = tuple(dict.fromkeys((*one.enquiry.folders, *folders)))
        return replace(one, enquiry=replace(one.enquiry, folders=asked))

    return replace(written, targets=tuple(map(more, written.targets)))


def ask(whom: Targets, lab: Lab, say: Say) -> Survey:
    """Survey every target; one that does not answer is in `failed` with its reason."""
    if not whom.targets:
        return Survey({})
    names = tuple(target.host.name for target in whom.targets)
    say(Doing("survey", 0, len(names), names))
    lab.expect(target.host for target in whom.targets)
    limits = lab.limits
    if any(target.enquiry.bench for target in whom.targets):
        limits = replace(limits, patience=_MEASURING)
    outcomes = survey_hosts(whom, lab.open_session, limits, lab.stop)
    for error in outcomes.failed.values():
        if isinstance(error, PasswordRefused):
            lab.spare(error)
    say(Doing("survey", len(outcomes.done), len(names), tuple(outcomes.failed)))
    silent = {name: Silence.of(error) for name, error in outcomes.failed.items()}
    return Survey(
        {name: _stamped(facts) for name, facts in outcomes.done.items()},
        {name: str(silence) for name, silence in silent.items()},
        silent=silent,
    )


def _stamped(facts: HostFacts) -> HostFacts:
    """Return what a host said, with the time where it was measured."""
    hardware = facts.hardware
    if not (hardware.gflops or hardware.io_mbps):
        return facts
    return replace(facts, hardware=replace(hardware, measured_at=float(int(time.time()))))


def _recorded(loaded: Loaded) -> tuple[HostRecord, ...]:
    """Return the hosts that the last apply touched."""
    record = read_record(Path(loaded.path), loaded.job)
    return record.hosts if record else ()
