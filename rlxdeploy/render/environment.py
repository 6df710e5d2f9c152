"""One rank's environment file."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rlxdeploy.errors import CompileError, Finding
from rlxdeploy.model.files import RemoteFile
from rlxdeploy.model.job import Secret
from rlxdeploy.model.keyed import shown_value
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.locate import KeyPath
from rlxdeploy.model.resolution import Resolution, Seat
from rlxdeploy.render.inputs import Inputs
from rlxdeploy.render.quoting import Unquotable, check_entry
from rlxdeploy.render.templates import RANK_ENV, TemplateFailed, Templates
from rlxdeploy.render.variables import Section, own_variables

# What stands for a secret that nobody has fetched.
HIDDEN = "(secret)"


def env_file(
    seat: Seat,
    ours: tuple[Section, ...],
    resolution: Resolution,
    inputs: Inputs,
    templates: Templates,
) -> RemoteFile:
    """Return the environment file of *seat*: *ours*, then what the person set.

    Raises CompileError naming every variable that cannot reach the process.
    """
    writer = _Writer(seat, ours, resolution, inputs, templates)
    # First what people may see: an error of the template may quote a value.
    shown = writer.text(writer.hidden)
    secret = any(isinstance(value, Secret) for value in seat.env.values())
    return RemoteFile(
        path=f"env/{seat.rank}.env",
        content=writer.with_secrets() if secret and inputs.secrets is not None else shown,
        mode=0o600,
        source=templates.origin(RANK_ENV),
        secret=secret,
        restarts=(seat.rank,),
        digest_key=inputs.digest_key,
        shown=shown if secret else None,
    )


def stand_ins(inputs: Inputs) -> Mapping[str, str]:
    """Return what people see of each secret that has been fetched, by its `from`.

    Values that differ are seen to differ, and nothing else.
    """
    return {
        source: shown_value(value, inputs.digest_key)
        for source, value in (inputs.secrets or {}).items()
    }


@dataclass(frozen=True, slots=True)
class _Writer:
    """What the environment file of *seat* is written from."""

    seat: Seat
    ours: tuple[Section, ...]
    resolution: Resolution
    inputs: Inputs
    templates: Templates

    def text(self, said: Callable[[Secret], str]) -> bytes:
        """Return the file with what *said* makes of each secret; raises CompileError."""
        own = Section("From the inventory.", own_variables(self.seat.env, said))
        sections = tuple(section for section in (*self.ours, own) if section.variables)
        if findings := [*_unfit(sections, self.seat, self.inputs)]:
            raise CompileError(findings)
        context: Mapping[str, object] = {
            "rank": self.seat.rank,
            "world": self.resolution.world,
            "job": self.resolution.job,
            "host": self.seat.host,
            "node": self.seat.node,
            "origin": self.inputs.origin,
            "sections": sections,
        }
        return self.templates.render(RANK_ENV, context)

    def with_secrets(self) -> bytes:
        """Return the file as the host gets it; raises CompileError, which quotes no secret."""
        secrets = self.inputs.secrets or {}
        try:
            return self.text(lambda secret: secrets[secret.source])
        except TemplateFailed as error:
            what = f"rank {self.seat.rank}: {RANK_ENV} cannot be filled in with the secrets of env"
            place = next((finding.place for finding in error.findings), None)
            raise CompileError([Finding(what, place)]) from None

    def hidden(self, secret: Secret) -> str:
        """Return what people see of *secret*."""
        return stand_ins(self.inputs).get(secret.source, HIDDEN)


def _unfit(sections: tuple[Section, ...], seat: Seat, inputs: Inputs) -> Iterator[Finding]:
    for name, value in (pair for section in sections for pair in section.variables.items()):
        try:
            check_entry(name, value)
        except Unquotable as error:
            place = inputs.loaded.place_of(own_key(name, seat, inputs.loaded))
            remedy = 'a star needs one address only: topology = "star"' if name == "PEERS" else ""
            yield Finding(f"rank {seat.rank}: {error}", place, name, remedy)


def own_key(name: str, seat: Seat, loaded: Loaded) -> KeyPath:
    """Return the key that sets a variable of the person's: the node's own, else the job's."""
    own: KeyPath = ("node", seat.index, "env", name)
    return own if loaded.written(own) else ("job", "env", name)
