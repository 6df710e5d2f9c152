"""Drift: what has changed on hosts since the last apply, and what becomes of it."""

from collections.abc import Iterator, Mapping

from rlxdeploy.model.plan import Drift
from rlxdeploy.model.stray import How, Stray
from rlxdeploy.model.survey import FileSeen, JobSeen
from rlxdeploy.model.vocabulary import Launch

_WORDS: Mapping[How, tuple[str, str]] = {
    How.CHANGED: ("has been changed", "apply puts it back"),
    How.MODE: ("has other permissions", "apply puts them back"),
    How.OWNER: ("has another owner", "apply puts the owner back"),
    How.MISSING: ("has been removed", "apply puts it back"),
    How.ADDED: ("is not ours", "apply removes it"),
    How.DROP_IN: ("is not ours", "it takes effect, and is left alone"),
    How.SWITCHED: ("points at another release", "apply points it back"),
    How.DISABLED: ("is no longer enabled at boot", "apply enables it"),
    How.ENABLED: ("has been enabled at boot", "apply disables it"),
}


def drift(jobs: Mapping[str, JobSeen]) -> tuple[Drift, ...]:
    """Return what is not as the last apply left it on each host, as the host itself says."""
    return tuple(
        Drift(host, stray.path, *_WORDS[stray.how])
        for host, job in jobs.items()
        for stray in (*job.strays, *_units(job))
    )


def own_files(job: JobSeen) -> Mapping[str, FileSeen]:
    """Return the files that are the job's, without the drop-ins that a person has put there."""
    theirs = {stray.path for stray in job.strays if stray.how is How.DROP_IN}
    return {path: seen for path, seen in job.files.items() if path not in theirs}


def _units(job: JobSeen) -> Iterator[Stray]:
    mark = job.deployed
    if mark is None or mark.boot is None or mark.launch == Launch.PROCESS or job.unconfirmed:
        return
    for seen in job.ranks:
        if seen.rank in mark.ranks and seen.enabled != mark.boot:
            how = How.DISABLED if mark.boot else How.ENABLED
            yield Stray(f"rlx-{mark.job}@{seen.rank}.service", how)
