"""One rank's environment file."""

from collections.abc import Iterator, Mapping

from rlxdeploy.errors import CompileError, Finding
from rlxdeploy.model.files import RemoteFile
from rlxdeploy.model.job import Secret
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.locate import KeyPath
from rlxdeploy.model.resolution import Resolution, Seat
from rlxdeploy.render.inputs import Inputs
from rlxdeploy.render.quoting import Unquotable, check_entry
from rlxdeploy.render.templates import RANK_ENV, Templates
from rlxdeploy.render.variables import Section, own_variables


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
    own = Section("From the inventory.", own_variables(seat.env, inputs.secrets))
    sections = tuple(section for section in (*ours, own) if section.variables)
    if findings := [*_unfit(sections, seat, inputs)]:
        raise CompileError(findings)
    context: Mapping[str, object] = {
        "rank": seat.rank,
        "world": resolution.world,
        "job": resolution.job,
        "host": seat.host,
        "node": seat.node,
        "origin": inputs.origin,
        "sections": sections,
    }
    return RemoteFile(
        path=f"env/{seat.rank}.env",
        content=templates.render(RANK_ENV, context),
        mode=0o600,
        source=templates.origin(RANK_ENV),
        secret=any(isinstance(value, Secret) for value in seat.env.values()),
        restarts=(seat.rank,),
    )


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
