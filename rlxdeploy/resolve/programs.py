"""Which files on a host the ranks' commands come to, and whether its Python will do."""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from rlxdeploy.model.survey import HostFacts
from rlxdeploy.model.vocabulary import Launch, Ready
from rlxdeploy.resolve.entries import Entry, Wanted
from rlxdeploy.resolve.report import Report
from rlxdeploy.resolve.targets import PYTHONS

_RUNTIME = ("-m", "rlxdeploy.runtime")
_OLDEST = (3, 9)


@dataclass(frozen=True, slots=True)
class Missing:
    """A program that is not there, and where it was looked for."""

    what: str


def find_program(program: str, facts: HostFacts) -> str | Missing:
    """Return the absolute path of *program* on a host, as the survey found it."""
    host, platform = facts.host.name, facts.platform
    if path := platform.programs.get(program):
        return path
    if program not in platform.programs:
        if program.startswith("/"):
            return program
        return Missing(f"the survey of {host} did not look for {program!r}; survey it again")
    places = ":".join(platform.searched) or "nowhere: the host did not say its PATH in time"
    where = "it is no executable file" if program.startswith("/") else f"searched {places}"
    return Missing(f"{program!r} is not on {host}; {where}")


def python_path(wanted: Wanted, facts: HostFacts, report: Report) -> str:
    """Return the path of the wanted interpreter, "" with an error in *report* if it lacks."""
    found = find_program(wanted.program, facts)
    if isinstance(found, Missing):
        report.error(wanted.key, found.what, "install it, or write python in [runtime]")
        return ""
    return found


def rank_python(wanted: Wanted, facts: HostFacts, report: Report) -> str:
    """Return the interpreter of a rank, "" where the host lacks it and the command does without."""
    command = report.loaded.inventory.job.command
    if command is None or command[0] in PYTHONS:
        return python_path(wanted, facts, report)
    found = find_program(wanted.program, facts)
    return "" if isinstance(found, Missing) else found


def argv(python: str, workdir: str, facts: HostFacts, report: Report) -> tuple[str, ...]:
    """Return what a rank runs, the program as an absolute path, all else as written.

    `python` and `python3` are the node's interpreter; a relative path counts from *workdir*.
    """
    job = report.loaded.inventory.job
    if job.command is None:
        return (python, *_RUNTIME)
    program, *arguments = job.command
    if program in PYTHONS:
        return (python, *arguments)
    if "/" in program and not program.startswith("/"):
        return (posixpath.normpath(f"{workdir}/{program}"), *arguments)
    delivered = [f"{workdir}/{file.dest}" for file in job.files]
    found = program if program in delivered else find_program(program, facts)
    if isinstance(found, Missing):
        report.error(("job", "command"), found.what, "install it, or write its absolute path")
        return ("", *arguments)
    return (found, *arguments)


def check_python(
    wanted: Sequence[tuple[Entry, Wanted]],
    asked: str,
    launch: Launch,
    facts: HostFacts,
    report: Report,
) -> None:
    """Refuse a host whose Python cannot run what the job needs of it.

    *asked* is the interpreter that the survey asked for its version and numpy.
    """
    host, platform = facts.host.name, facts.platform
    needed = _uses_runtime(report)
    if not needed and launch is not Launch.PROCESS:
        return
    version = platform.python_version
    if version and _parsed(version) < _OLDEST:
        key = wanted[0][1].key
        what = f"{asked} on {host} is Python {version}; the runtime needs 3.9"
        report.error(key, what, "install a newer one there, or write python in [runtime]")
    for entry, one in wanted if needed else ():
        if one.program != asked:
            report.notice(entry.key("python"), f"{one.program} was not asked for its numpy")
        elif version and not platform.numpy:
            what = f"{asked} on {host} (Python {version}) has no numpy, which the runtime needs"
            report.error(one.key, what, "install it there, or write python in [runtime]")


def _uses_runtime(report: Report) -> bool:
    """Tell whether the ranks import the bundled runtime with the node's interpreter."""
    job = report.loaded.inventory.job
    if job.command is None:
        return True
    return job.effective_ready is Ready.NOTIFY and job.command[0] in PYTHONS


def _parsed(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
