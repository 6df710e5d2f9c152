"""Use cases that compile and write down: the concrete inventory, the tree of files, the survey."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlxdeploy.app.compile import Compiled, Request, compile_job
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import Say
from rlxdeploy.app.survey import NOTHING, Extra, surveyed
from rlxdeploy.app.validate import load_to_compile
from rlxdeploy.edge.files import FileError, write_atomically
from rlxdeploy.edge.speeds import read_speeds, write_speeds
from rlxdeploy.errors import Finding, HostError, Severity
from rlxdeploy.facts.caps import NodeCaps
from rlxdeploy.model.codec import dump_survey
from rlxdeploy.model.survey import Survey
from rlxdeploy.render.concrete import resolve_toml
from rlxdeploy.resolve.machines import in_file_order, merged
from rlxdeploy.resolve.recall import is_missed
from rlxdeploy.resolve.speeds import renewed, speeds_of
from rlxdeploy.resolve.workers import as_workers

# What the host's Python has to have torch for.
_CARDS = frozenset({"cuda", "rocm"})


@dataclass(frozen=True, slots=True)
class Probed:
    """A survey, with what upstream's `--probe` would say of each host, and all findings."""

    survey: Survey
    workers: Mapping[str, NodeCaps]
    notices: tuple[Finding, ...]

    @property
    def unmeasured(self) -> tuple[Finding, ...]:
        """What could not be measured, and why."""
        return tuple(
            Finding(f"{name}: {what} not measured: {why}", severity=Severity.NOTICE)
            for name, facts in self.survey.hosts.items()
            for what, why in facts.hardware.unmeasured.items()
            if what != "cards" or any(one.device in _CARDS for one in facts.hardware.devices)
        )

    @property
    def failed(self) -> Mapping[str, HostError]:
        """The hosts that did not answer and are missed; other found ones are in the notices."""
        found = {one.ssh for one in self.survey.found if not is_missed(one, self.survey)}
        return {name: one for name, one in self.survey.errors.items() if name not in found}


def concrete(request: Request, lab: Lab, say: Say) -> str:
    """Return the inventory with everything settled, as TOML that resolves to the same group."""
    compiled = compile_job(request, lab, say)
    return resolve_toml(compiled.resolution, compiled.loaded)


def render_tree(request: Request, folder: Path, lab: Lab, say: Say) -> tuple[Path, ...]:
    """Write every host's files under `<folder>/<host>/` and return their paths.

    Files of a release lie at the path that `current` gives them.  The job's key, which protects a
    group that runs, is left out, and `(secret)` stands in the place of every secret.  Raises
    FileError where *folder* holds something already, so that no stale file is taken for a rendered
    one.
    """
    compiled = compile_job(request, lab, say)
    _need_empty(folder)
    written = []
    for path, content, mode in _tree(compiled, folder):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content, mode)
        written.append(path)
    return tuple(written)


def probe(inventory: Path, lab: Lab, say: Say, extra: Extra = NOTHING) -> Probed:
    """Survey the inventory's machines as *extra* says, without compiling anything.

    What was measured is kept beside the inventory for later plans.  Raises RecordError where that
    cannot be done, SearchInterrupted, and UsageError where *extra* means nobody.
    """
    loaded = load_to_compile(inventory)
    lab.follow(loaded)
    grown, survey = surveyed(loaded, None, lab, say, extra)
    if extra.bench:
        path = Path(loaded.path)
        write_speeds(path, renewed(read_speeds(path), speeds_of(survey)))
    twice = tuple(
        Finding(f"{other} is {host} under another name", severity=Severity.NOTICE)
        for other, host in merged(in_file_order(survey, grown)).items()
    )
    return Probed(survey, as_workers(grown, survey), (*grown.notices, *twice))


def save_survey(survey: Survey, path: Path) -> None:
    """Write *survey* so that `plan --survey` compiles from it; raises FileError."""
    save(dump_survey(survey), path)


def save(text: str, path: Path) -> None:
    """Write *text* to a file that a person named; raises FileError."""
    write_atomically(path, text.encode(), 0o644)


def _need_empty(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = next(folder.iterdir(), None)
    except OSError as error:
        raise FileError(f"{folder}: {error.strerror}") from error
    if occupied is not None:
        raise FileError(f"{folder} is not empty ({occupied.name}); name a new folder")


def _tree(compiled: Compiled, folder: Path) -> list[tuple[Path, bytes, int]]:
    surveyed = [facts.job.deployed for facts in compiled.survey.hosts.values()]
    generation = max((one.generation for one in surveyed if one), default=1)
    files = compiled.files(generation)
    found = []
    for name, host in files.hosts.items():
        tree = compiled.resolution.hosts[name].tree
        inside = folder / name
        placed = [(f"{tree.current}/{file.path}", file) for file in host.released]
        placed += [(file.path, file) for file in (*host.installed, *host.stored)]
        found += [(inside / path.lstrip("/"), file.content, file.mode) for path, file in placed]
    return found
