"""One host's part of a Plan as one shell script and the payload that follows it on stdin.

The functions the script calls are in `deeds/`; here the data of the steps become calls.  What the
payload looks like, and how little of a host's time it takes, is `contents`.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import assert_never

from rlxdeploy.edge.contents import SEPARATOR, Payload
from rlxdeploy.edge.staging import begun, finished
from rlxdeploy.facts.privilege import as_root_or
from rlxdeploy.model.files import HostFiles
from rlxdeploy.model.plan import HostPlan, Site
from rlxdeploy.model.step import (
    InstallFile,
    MarkDeployment,
    PruneReleases,
    ReloadUnits,
    RemoveFile,
    RemoveJob,
    RestoreRelease,
    StageRelease,
    StartRanks,
    Step,
    StopRanks,
    StoreFile,
    SwitchRelease,
)
from rlxdeploy.model.vocabulary import Launch

_DEEDS = Path(__file__).with_name("deeds")
_PARTS = ("say", "process", "lock", "folder", "stage", "ranks", "sweep", "go", "back", "timer")

_TIMER = "the revert timer"

# One argument of a command may be 128 KiB on Linux, and sudo takes the script as one.
_LONGEST_SCRIPT = 120_000


@dataclass(frozen=True, slots=True)
class Terms:
    """What the host is told besides the steps.

    *marker* begins each of its lines to us; *by* is what others read in the lock, one line.  The
    host undoes everything if GO has not come *stage_s* seconds after it began, and gives the lock
    up *hold_s* seconds after its last step, sooner when told or left.
    """

    marker: str
    by: str
    stage_s: int
    hold_s: int


@dataclass(frozen=True, slots=True)
class Script:
    """*text* goes through `session.framed`, *payload* right behind it.

    *steps* are the calls after GO, in the order of their numbers, which count from 1; *confirm*
    those that follow the word CONFIRM, counted on.
    """

    text: str
    payload: bytes
    steps: tuple[Step, ...]
    confirm: tuple[Step, ...] = ()


def compose(part: HostPlan, files: HostFiles | None, terms: Terms) -> Script:
    """Return the script that carries out *part*; *files* hold the contents that it names.

    Raises KeyError where a content is missing: the plan was made from other files.
    """
    payload = Payload(files, terms.marker)
    stage = [*_stage(part, payload)]
    calls, whole = _steps(part), payload.whole
    deeds = "\n".join(
        [
            *_deeds(part, terms),
            f"guard_for {terms.stage_s}",
            "lock",
            *_as_seen(part),
            *([_words("take", *payload.sizes, SEPARATOR.decode())] if whole else []),
            *stage,
            *_confirmed(calls[len(part.go) :]),
            "await_go",
            # Whoever stops or destroys a job has decided what is to become of it.
            f"arm {part.back.after_s}" if part.back else "stay",
            *calls[: len(part.go)],
            "report over",
            "hold_for_a_word",
            "",
        ]
    )
    return Script(_privileged(part, deeds, terms), whole, part.go, part.confirm)


def _as_seen(part: HostPlan) -> Iterator[str]:
    """Return the call that refuses where another apply has come and gone since the survey."""
    if part.back is not None and part.back.stands is not None:
        yield _words("as_seen", part.back.stands)


def compose_again(part: HostPlan, lost: str, terms: Terms) -> str:
    """Return the script that takes up the session whose marker is *lost*, after GO.

    It tells what that session's steps came to, and holds for a word as that one did.
    """
    deeds = "\n".join(
        [
            *_deeds(part, terms),
            _deed("again"),
            *_confirmed(_steps(part)[len(part.go) :]),
            _words("take_up", lost, _TIMER),
            "hold_for_a_word",
            "",
        ]
    )
    return _privileged(part, deeds, terms)


def _steps(part: HostPlan) -> list[str]:
    """Return the calls after GO and then those after CONFIRM, numbered."""
    calls = [*_calls(part, part.go), *_calls(part, part.confirm)]
    return [f"step {number} {call}" for number, call in enumerate(calls, start=1)]


def _calls(part: HostPlan, steps: Sequence[Step]) -> Iterator[str]:
    """Yield a call for each of *steps*; the last one that puts a name in place settles them all."""
    named = {number: folder for number, step in enumerate(steps) if (folder := _named(part, step))}
    for number, step in enumerate(steps):
        call = _call(part, step)
        last = named and number == max(named)
        yield f"{_words('durably', *dict.fromkeys(named.values()), '--')} {call}" if last else call


def _named(part: HostPlan, step: Step) -> str:
    """Return the folder in which *step* puts a name in place, "" for none."""
    match step:
        case SwitchRelease() | MarkDeployment():
            return part.tree.home
        case InstallFile():
            return step.path.rpartition("/")[0] or "/"
        case _:
            return ""


def _confirmed(calls: list[str]) -> tuple[str, ...]:
    """Return the function that does what comes once all ranks have joined."""
    return "confirmed() {", ":", *calls, "}"


def compose_unlock(site: Site, terms: Terms) -> str:
    """Return the script that frees the job's lock, ending whoever holds it."""
    part = HostPlan(site.host, site.tree, site.launch)
    return _privileged(part, "\n".join([*_deeds(part, terms), "end_holder", ""]), terms)


def _deeds(part: HostPlan, terms: Terms) -> Iterator[str]:
    yield from _settings(part, terms)
    yield from map(_deed, _PARTS)


@cache
def _deed(name: str) -> str:
    return (_DEEDS / f"{name}.sh").read_text(encoding="utf-8")


def _way_back(part: HostPlan, payload: Payload) -> Iterator[str]:
    """Yield the call that keeps what stands, and lay the script that the revert timer runs."""
    if part.back is None:
        return
    lonely = Terms("-", _TIMER, 0, 0)
    script = "\n".join([*_deeds(part, lonely), "fire", ""])
    ranks = [str(rank) for rank in part.back.again]
    files = [step.path for step in part.go if isinstance(step, InstallFile)]
    yield _words("way_back", "boot" if part.back.boot else "", *ranks, "--", *files)
    payload.lay(f"{part.tree.home}/.revert.tmp/back.sh", 0o600, "", script.encode())


def _settings(part: HostPlan, terms: Terms) -> Iterator[str]:
    values: Mapping[str, str] = {
        "m": terms.marker,
        "by": terms.by.replace("\n", " "),
        "data": part.tree.data,
        "home": part.tree.home,
        "run_home": part.tree.run_home,
        "job": part.tree.job,
        "launch": part.launch,
        "hold": str(terms.hold_s),
        "units": part.tree.units,
        "new_ranks": " ".join(map(str, part.back.ranks)) if part.back else "",
        "new_plan": part.back.plan if part.back else "",
        "notify": "notify" if part.back and part.back.notify else "",
    }
    yield from (f"{name}={shlex.quote(value)}" for name, value in values.items())


def _stage(part: HostPlan, payload: Payload) -> Iterator[str]:
    """Yield what happens before GO."""
    yield from begun(part, payload)
    yield from _way_back(part, payload)
    yield from finished(part, payload)


def _call(part: HostPlan, step: Step) -> str:  # noqa: C901, PLR0911 - one case for each step
    match step:
        case StopRanks():
            return _stop(part, step)
        case SwitchRelease():
            return _words("switch", step.release)
        case RestoreRelease():
            return _words("restore", step.release)
        case InstallFile():
            return _words("put_in_place", step.path)
        case MarkDeployment():
            return _words("put_in_place", part.tree.deployment)
        case RemoveFile():
            return _words("remove", step.path)
        case ReloadUnits():
            return "reload_held"
        case StartRanks():
            return _start(part, step)
        case PruneReleases():
            return f"prune {step.keep}"
        case RemoveJob():
            return "remove_job"
        case StoreFile() | StageRelease():
            raise ValueError(f"{step} belongs before GO")
        case _:
            assert_never(step)


def _stop(part: HostPlan, step: StopRanks) -> str:
    if part.launch == Launch.PROCESS:
        return _words("stop_supervisors", *map(str, step.ranks))
    return _words("stop_units", "disable" if step.disable else "", *map(str, step.ranks))


def _start(part: HostPlan, step: StartRanks) -> str:
    ranks = map(str, step.ranks)
    if part.launch == Launch.PROCESS:
        return _words("start_supervisors", step.release, *ranks, "--", *step.supervisor)
    return _words("start_units", "boot" if step.boot else "", *ranks)


def _words(*words: str) -> str:
    return shlex.join(words)


def _privileged(part: HostPlan, deeds: str, terms: Terms) -> str:
    """Have the deeds done by root where the tree is the system's: here and nowhere else."""
    if part.launch != Launch.SYSTEMD:
        return deeds
    if len(deeds) > _LONGEST_SCRIPT:
        raise ValueError(f"a script of {len(deeds)} bytes is too long for sudo")
    why = '"${rlx_why:-sudo wants a password, see --ask-become-pass}"'
    refused = f"printf '\\n%s failed stage %s\\n' {shlex.quote(terms.marker)} {why}"
    return as_root_or(f"{refused}; exit 1", deeds)
