"""From an inventory to how its hosts should be: read, survey, resolve, render."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from rlxdeploy.app.lab import Lab
from rlxdeploy.app.recall import with_recalled
from rlxdeploy.app.say import Say
from rlxdeploy.app.secrets import fetched, key_of
from rlxdeploy.app.survey import surveyed
from rlxdeploy.app.validate import load_to_compile
from rlxdeploy.edge.archive import runtime_archive
from rlxdeploy.edge.gather import own_templates, shipped_templates, sources
from rlxdeploy.edge.jobkey import read_key
from rlxdeploy.edge.record import read_record
from rlxdeploy.edge.speeds import read_speeds
from rlxdeploy.model.files import RemoteFiles
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.scope import ALL, Scope
from rlxdeploy.model.survey import Survey
from rlxdeploy.model.vocabulary import Policy
from rlxdeploy.render.inputs import Inputs
from rlxdeploy.resolve.controller import Controller
from rlxdeploy.resolve.promote import Promotion
from rlxdeploy.resolve.speeds import with_speeds

# What counts only once the hosts have answered is loaded while they are asked.
_AFTERWARDS = (
    "rlxdeploy.resolve.resolve",
    "rlxdeploy.render.render",
    "rlxdeploy.plan.make",
    "rlxdeploy.app.apply",
)

# The others do not look at speeds, and so need none that are kept.
_BY_SPEED = frozenset({Policy.THROUGHPUT, Policy.AUTO})


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asks to have compiled.

    *survey* is a saved one, then no host is asked; with *skip_unreachable* a written host that does
    not answer is left out of the group, and so are up to *max_fail* of them.  *promote* names
    standbys that take over (`resolve.promote`).  *placement* is that of a saved plan, which is to
    be carried out as it is.
    """

    inventory: Path
    survey: Path | None = None
    templates: Path | None = None
    skip_unreachable: bool = False
    promote: tuple[str, ...] = ()
    max_fail: int = 0
    placement: str = ""


@dataclass(frozen=True, slots=True)
class Compiled:
    """The group, settled, and what its files are made of."""

    survey: Survey
    resolution: Resolution
    inputs: Inputs
    _rendered: dict[int, RemoteFiles] = field(default_factory=dict, repr=False, compare=False)

    @property
    def loaded(self) -> Loaded:
        return self.inputs.loaded

    def files(self, generation: int) -> RemoteFiles:
        """Return how each host should be in *generation*; raises CompileError."""
        from rlxdeploy.render.render import render  # noqa: PLC0415 - see _AFTERWARDS

        if generation not in self._rendered:
            self._rendered[generation] = render(self.resolution, self.inputs, generation)
        return self._rendered[generation]


def compile_job(
    request: Request, lab: Lab, say: Say, *, with_secrets: bool = False, scope: Scope = ALL
) -> Compiled:
    """Take *request* as far as its Resolution; only *with_secrets* does anybody need to have them.

    A host that *scope* does not mean and that does not answer is taken from the last apply.

    Raises InventoryError or CompileError with every finding, and an ExceptionGroup of Unreachable
    where a written host did not answer, and UsageError where no standby is to be promoted; nothing
    is changed anywhere.
    """
    loaded = load_to_compile(request.inventory)
    lab.follow(loaded)
    secrets = fetched(loaded) if with_secrets else None
    lab.meanwhile = _load_afterwards
    loaded, survey = surveyed(loaded, request.survey, lab, say)
    from rlxdeploy.resolve.resolve import resolve  # noqa: PLC0415 - see _AFTERWARDS

    if request.survey is None and not scope.is_all:
        survey = with_recalled(loaded, survey, scope)
    if request.survey is None and loaded.inventory.placement.policy in _BY_SPEED:
        survey = with_speeds(survey, read_speeds(Path(loaded.path)))
    controller = Controller(lab.interpreter, survey.names, request.placement)
    most = math.inf if request.skip_unreachable else request.max_fail
    promotion = Promotion(request.promote, _recorded_ranks(loaded) if request.promote else {})
    resolution = resolve(loaded, survey, controller, promotion, max_silent=most)
    inputs = gathered(loaded, request.templates)
    key = key_of(loaded, survey)
    return Compiled(survey, resolution, replace(inputs, secrets=secrets, digest_key=key))


def _load_afterwards() -> None:
    # What fails here fails again where it is needed, and is told then.
    with suppress(Exception):
        for name in _AFTERWARDS:
            import_module(name)
        from rlxdeploy.render.templates import environment_of  # noqa: PLC0415 - as the others

        shipped = shipped_templates()
        for name in shipped:
            environment_of(shipped).get_template(name)


def gathered(loaded: Loaded, templates: Path | None) -> Inputs:
    """Return what rendering needs from the controller, secrets and their key left out.

    Raises FileError, InventoryError, and RecordError where the job's key cannot be read.
    """
    path, name = Path(loaded.path), loaded.job
    return Inputs(
        loaded=loaded,
        archive=runtime_archive(),
        templates=shipped_templates(),
        overrides=own_templates(templates),
        sources=sources(loaded),
        key=read_key(path, name),
    )


def _recorded_ranks(loaded: Loaded) -> Mapping[str, tuple[int, ...]]:
    record = read_record(Path(loaded.path), loaded.job)
    return {one.host.name: one.ranks for one in record.hosts} if record else {}
