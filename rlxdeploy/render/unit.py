"""One host's unit and its drop-ins, for the system's manager or a user's."""

from collections.abc import Iterator, Mapping

from rlxdeploy.errors import CompileError, Finding
from rlxdeploy.model.files import RemoteFile
from rlxdeploy.model.host import Tree
from rlxdeploy.model.resolution import Placed, Seat
from rlxdeploy.model.vocabulary import Hardening, Launch
from rlxdeploy.render.inputs import Inputs
from rlxdeploy.render.quoting import Unquotable, exec_line, unit_value
from rlxdeploy.render.service import service_of
from rlxdeploy.render.templates import UNIT, Templates

_MODE = 0o644


def unit_files(
    placed: Placed, seats: tuple[Seat, ...], inputs: Inputs, templates: Templates
) -> Iterator[RemoteFile]:
    """Yield the template unit of the job, and a drop-in for each rank with a command of its own.

    Raises CompileError where a value does not survive a unit file.
    """
    try:
        yield _unit(placed, seats, inputs, templates)
        yield from (_drop_in(placed.tree, seat) for seat in seats if seat.argv != seats[0].argv)
    except Unquotable as error:
        what = f"the unit on {placed.host.name} cannot be written: {error}"
        raise CompileError([Finding(what, inputs.loaded.place_of(("job",)))]) from error


def unit_name(job: str) -> str:
    """Return the name of the job's template unit."""
    return f"rlx-{job}@.service"


def instance_name(job: str, rank: int) -> str:
    """Return the name of the unit of one rank."""
    return f"rlx-{job}@{rank}.service"


def _unit(
    placed: Placed, seats: tuple[Seat, ...], inputs: Inputs, templates: Templates
) -> RemoteFile:
    job = inputs.loaded.inventory.job
    context = {
        "job": placed.tree.job,
        "origin": inputs.origin,
        "scope": "system" if placed.launch == Launch.SYSTEMD else "user",
        "service": service_of(job),
        "hardening": job.hardening.value,
        "unit": _settings(placed, seats[0], strict=job.hardening is Hardening.STRICT),
    }
    return RemoteFile(
        path=f"{placed.tree.units}/{unit_name(placed.tree.job)}",
        content=templates.render(UNIT, context),
        mode=_MODE,
        source=templates.origin(UNIT),
        restarts=tuple(seat.rank for seat in seats),
    )


def _settings(placed: Placed, seat: Seat, *, strict: bool) -> Mapping[str, str]:
    tree = placed.tree
    own_run = tree.run.startswith(f"{tree.home}/")
    written = placed.workdir != tree.current
    return {
        "exec_start": exec_line(seat.argv),
        "workdir": unit_value(placed.workdir),
        "env_file": f"{unit_value(tree.current)}/env/%i.env",
        "user": placed.user,
        "runtime_directory": "" if own_run else f"rlx/{tree.job}",
        "writable": exec_line((placed.workdir,)) if strict and written else "",
    }


def _drop_in(tree: Tree, seat: Seat) -> RemoteFile:
    text = (
        f"# Rank {seat.rank} has a command of its own; written by rlxdeploy.\n"
        f"[Service]\nExecStart=\nExecStart={exec_line(seat.argv)}\n"
    )
    return RemoteFile(
        path=f"{tree.units}/{instance_name(tree.job, seat.rank)}.d/rank.conf",
        content=text.encode(),
        mode=_MODE,
        source="rlxdeploy",
        restarts=(seat.rank,),
    )
