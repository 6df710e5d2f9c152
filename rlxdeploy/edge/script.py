"""One host's part of a Plan as one shell script and the payload that follows it on stdin.

The functions the script calls are in `deeds/`; here the data of the steps become calls.  The
payload is the contents one after the other, each once: the script takes it whole into a file and
cuts the pieces out, so that no reader ahead of time can swallow the line that says GO.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from rlxdeploy.facts.privilege import as_root_or
from rlxdeploy.model.files import HostFiles
from rlxdeploy.model.host import Tree
from rlxdeploy.model.note import Note, note
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

# Where a content begins at a multiple of its own size, a host cuts it out with one process, not
# three; so much of nothing may go over the wire for that.
_WIDEST_GAP = 32 << 10

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
    payload = _Payload(files)
    _lay_stored(part, payload)
    stage = [*_stage(part, payload), *_way_back(part, payload)]
    steps = enumerate((*part.go, *part.confirm), start=1)
    calls = [f"step {number} {_call(part, step)}" for number, step in steps]
    deeds = "\n".join(
        [
            *_deeds(part, terms),
            f"guard_for {terms.stage_s}",
            "lock",
            *_as_seen(part),
            f"take {len(payload.data)}",
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
    return Script(_privileged(part, deeds, terms), bytes(payload.data), part.go, part.confirm)


def _as_seen(part: HostPlan) -> Iterator[str]:
    """Return the call that refuses where another apply has come and gone since the survey."""
    if part.back is not None and part.back.stands is not None:
        yield _words("as_seen", part.back.stands)


def compose_again(part: HostPlan, lost: str, terms: Terms) -> str:
    """Return the script that takes up the session whose marker is *lost*, after GO.

    It tells what that session's steps came to, and holds for a word as that one did.
    """
    steps = enumerate((*part.go, *part.confirm), start=1)
    calls = [f"step {number} {_call(part, step)}" for number, step in steps]
    deeds = "\n".join(
        [
            *_deeds(part, terms),
            (_DEEDS / "again.sh").read_text(encoding="utf-8"),
            *_confirmed(calls[len(part.go) :]),
            _words("take_up", lost, _TIMER),
            "hold_for_a_word",
            "",
        ]
    )
    return _privileged(part, deeds, terms)


def _confirmed(calls: list[str]) -> tuple[str, ...]:
    """Return the function that does what comes once all ranks have joined."""
    return "confirmed() {", ":", *calls, "}"


def compose_unlock(site: Site, terms: Terms) -> str:
    """Return the script that frees the job's lock, ending whoever holds it."""
    part = HostPlan(site.host, site.tree, site.launch)
    return _privileged(part, "\n".join([*_deeds(part, terms), "end_holder", ""]), terms)


def _deeds(part: HostPlan, terms: Terms) -> Iterator[str]:
    yield from _settings(part, terms)
    yield from ((_DEEDS / f"{name}.sh").read_text(encoding="utf-8") for name in _PARTS)


def _way_back(part: HostPlan, payload: "_Payload") -> Iterator[str]:
    """Yield the call that keeps what stands, with the script that the revert timer runs."""
    if part.back is None:
        return
    lonely = Terms("-", _TIMER, 0, 0)
    script = "\n".join([*_deeds(part, lonely), "fire", ""])
    ranks = [str(rank) for rank in part.back.again]
    files = [step.path for step in part.go if isinstance(step, InstallFile)]
    place = payload.add(script.encode())
    yield f"way_back {place} {_words('boot' if part.back.boot else '', *ranks, '--', *files)}"


class _Payload:
    """Contents by digest in the order in which they are first asked for."""

    def __init__(self, files: HostFiles | None) -> None:
        every = (*files.released, *files.installed, *files.stored) if files else ()
        self._contents = {file.digest: file.content for file in every}
        self._key = files.key if files else None
        self._files = files
        self._places: dict[str, str] = {}
        self.data = bytearray()

    def place(self, digest: str) -> str:
        """Return `offset bytes` of a content."""
        if digest not in self._places:
            self._places[digest] = self.add(self._contents[digest])
        return self._places[digest]

    def key(self) -> str:
        """Return `offset bytes` of the job's key."""
        if self._key is None:
            raise KeyError("the job's key")
        return self.add(self._key.content)

    def note(self, tree: Tree) -> Note:
        """Return what the mark of an apply says of the files that it leaves."""
        return note(self._files, tree) if self._files else {}

    def add(self, content: bytes) -> str:
        if content:
            gap = -len(self.data) % len(content)
            self.data += bytes(gap if gap <= _WIDEST_GAP else 0)
        place = f"{len(self.data)} {len(content)}"
        self.data += content
        return place


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


def _lay_stored(part: HostPlan, payload: _Payload) -> None:
    """Put the largest contents first, before which any gap would be wide."""
    for step in part.stage:
        if isinstance(step, StoreFile):
            payload.place(step.digest)


def _stage(part: HostPlan, payload: _Payload) -> Iterator[str]:
    """Yield what happens before GO: releases first, for the store is swept by what they name."""
    releases = [step for step in part.stage if isinstance(step, StageRelease)]
    for release in releases:
        yield _words("begin", release.release)
        for file in release.files:
            mode = f"{file.mode:o}"
            yield f"{_words('put', release.release, file.path, mode)} {payload.place(file.digest)}"
        yield _words("finish", release.release)
    for step in part.stage:
        if isinstance(step, StoreFile):
            yield f"store {step.digest} {payload.place(step.digest)}"
    yield from _prepare(part, payload)


def _prepare(part: HostPlan, payload: _Payload) -> Iterator[str]:
    for step in part.go:
        match step:
            case InstallFile():
                words = _words("prepare", step.path, f"{step.mode:o}", step.owner)
                yield f"{words} {payload.place(step.digest) if step.digest else payload.key()}"
            case MarkDeployment():
                mark = {**step.fields, "files": payload.note(part.tree)}
                place = payload.add((json.dumps(mark) + "\n").encode())
                yield f"{_words('prepare', part.tree.deployment, '600', '')} {place}"
            case StartRanks() if part.launch == Launch.PROCESS:
                yield _words("need_folder", part.tree.run_home)
                yield _words("need_folder", part.tree.logs)


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
