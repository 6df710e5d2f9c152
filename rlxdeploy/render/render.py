"""From the Resolution to every host's files: `render` is the stage, the rest are its parts."""

import hashlib
from collections.abc import Iterable, Mapping

from rlxdeploy.errors import CompileError, Finding
from rlxdeploy.model.files import HostFiles, RemoteFile, RemoteFiles
from rlxdeploy.model.keyed import keyed
from rlxdeploy.model.resolution import Placed, Resolution, Seat
from rlxdeploy.model.vocabulary import Launch, Security
from rlxdeploy.render.environment import env_file
from rlxdeploy.render.inputs import Inputs
from rlxdeploy.render.jobfiles import group_context, job_files
from rlxdeploy.render.key import key_file
from rlxdeploy.render.process import process_file
from rlxdeploy.render.service import service_of
from rlxdeploy.render.templates import Templates
from rlxdeploy.render.unit import unit_files
from rlxdeploy.render.variables import Around, Section, plan_hash, rank_sections

_RELEASE_DIGITS = 12


def render(resolution: Resolution, inputs: Inputs, generation: int) -> RemoteFiles:
    """Return how each host of *resolution* should be; the same bytes for the same arguments.

    Raises CompileError with all that cannot be rendered, on any host.
    """
    renderer = Renderer(resolution, inputs, generation)
    hosts: dict[str, HostFiles] = {}
    findings: dict[Finding, None] = {}
    for name, placed in resolution.hosts.items():
        try:
            hosts[name] = renderer.host(placed)
        except CompileError as error:
            findings |= dict.fromkeys(error.findings)
    if findings:
        raise CompileError(tuple(findings))
    return RemoteFiles(hosts, release_id(hosts, inputs.digest_key), renderer.plan, generation)


def release_id(hosts: Mapping[str, HostFiles], key: bytes) -> str:
    """Return the id that the same files on the same hosts always get under one *key*.

    A secret may be short, and the id is shown to everybody: without the key, nobody can try likely
    secrets against it.
    """
    total = hashlib.sha256()
    for name, files in sorted(hosts.items()):
        for file in (*files.released, *files.installed, *files.stored):
            digest = _keyed(file, key) if file.secret else file.sha256
            total.update(f"{name}\0{file.path}\0{file.mode:o}\0{digest}\n".encode())
    return total.hexdigest()[:_RELEASE_DIGITS]


def _keyed(file: RemoteFile, key: bytes) -> str:
    if not key:
        raise ValueError(f"{file.path} is a secret, and there is no key to digest it with")
    return keyed(file.sha256, key)


class Renderer:
    """What is the same for all hosts of one compile."""

    def __init__(self, resolution: Resolution, inputs: Inputs, generation: int) -> None:
        self._resolution = resolution
        self._inputs = inputs
        self._job = inputs.loaded.inventory.job
        self._service = service_of(self._job)
        self._templates = Templates(inputs)
        self._has_key = self._job.effective_security is Security.PSK
        self._digest = hashlib.sha256(inputs.archive).hexdigest()
        self._group = group_context(resolution)
        self._peers = ",".join(resolution.peers)
        self._seats: dict[str, list[Seat]] = {}
        for seat in resolution.seats:
            if seat.managed:
                self._seats.setdefault(seat.host, []).append(seat)
        self.plan = plan_hash(resolution, self._digest, generation)

    def host(self, placed: Placed) -> HostFiles:
        """Return the files of one host; raises CompileError."""
        seats = tuple(self._seats.get(placed.host.name, ()))
        ranks = tuple(seat.rank for seat in seats)
        theirs = job_files(placed, ranks, self._group, self._inputs, self._templates)
        process = placed.launch == Launch.PROCESS
        released = [self._env(placed, seat) for seat in seats] or [self._held()]
        installed: Iterable[RemoteFile] = ()
        if process:
            released += [process_file(placed, seat, self._service, self.plan) for seat in seats]
        elif seats:
            installed = unit_files(placed, seats, self._inputs, self._templates)
        return HostFiles(
            host=placed.host.name,
            released=(*released, *theirs.released),
            installed=(*installed, *theirs.installed),
            stored=(self._archive(placed, ranks),),
            key=key_file(placed, ranks, self._inputs.key) if self._has_key else None,
        )

    def sections(self, placed: Placed, seat: Seat) -> tuple[Section, ...]:
        """Return what rlxdeploy itself sets for *seat*."""
        archive = placed.tree.stored(self._digest)
        around = Around(
            self._resolution,
            self._peers,
            self._job,
            placed.tree,
            self.plan,
            archive,
            advertise=self._inputs.loaded.inventory.discover.advertise,
        )
        return rank_sections(seat, around)

    def _env(self, placed: Placed, seat: Seat) -> RemoteFile:
        sections = self.sections(placed, seat)
        return env_file(seat, sections, self._resolution, self._inputs, self._templates)

    def _held(self) -> RemoteFile:
        """Return what keeps the archive in the store of a host where no rank's file names it."""
        return RemoteFile("env/stored", f"{self._digest}\n".encode(), 0o600, "rlxdeploy")

    def _archive(self, placed: Placed, ranks: tuple[int, ...]) -> RemoteFile:
        return RemoteFile(
            path=placed.tree.stored(self._digest),
            content=self._inputs.archive,
            mode=0o644,
            source="rlxdeploy.runtime",
            restarts=ranks,
        )
