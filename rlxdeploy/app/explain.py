"""The use case `explain`: which line, probe or rule gave each value of a rank or a host."""

import shlex
from collections.abc import Iterator

from rlxdeploy.app.compile import Compiled, Request, compile_job
from rlxdeploy.app.explain_host import explain_host, placed_values
from rlxdeploy.app.explained import Explained, Value, noticed
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import Say
from rlxdeploy.errors import UsageError
from rlxdeploy.model.resolution import Seat
from rlxdeploy.render.reasons import rank_variables
from rlxdeploy.resolve.entries import entries


def explain(what: str, request: Request, lab: Lab, say: Say) -> Explained:
    """Compile *request* and explain the rank, the host or the node called *what*.

    Raises what `compile_job` raises, and UsageError where there is no such rank or host.
    """
    compiled = compile_job(request, lab, say)
    resolution, survey = compiled.resolution, compiled.survey
    if what.isdecimal() and int(what) < resolution.world:
        return _explain_rank(resolution.seats[int(what)], compiled)
    if host := _host_called(what, compiled):
        return explain_host(host, compiled)
    if seat := next((one for one in resolution.seats if one.node == what), None):
        return _explain_rank(seat, compiled)
    known = ", ".join([*survey.hosts, *survey.failed])
    ranks = f"rank from 0 to {resolution.world - 1}"
    raise UsageError(f"{what!r} is no {ranks}, and no host of {known}")


def _host_called(what: str, compiled: Compiled) -> str | None:
    """Return the machine of that name, or the one that a managed node of that name is on."""
    merged, survey = compiled.resolution.merged, compiled.survey
    nodes = {one.name: one.host.name for one in entries(compiled.loaded) if one.node.managed}
    known = [merged.get(name, name) for name in (what, nodes.get(what, ""))]
    return next((name for name in known if name in {*survey.hosts, *survey.failed}), None)


def _explain_rank(seat: Seat, compiled: Compiled) -> Explained:
    values = [*_values(seat)]
    environment: tuple[Value, ...] = ()
    if seat.managed:
        values += placed_values(compiled.resolution.hosts[seat.host])
        environment = tuple(_environment(seat, compiled))
    notices = noticed(compiled, {seat.index})
    return Explained(f"rank {seat.rank}", tuple(values), environment, notices)


def _values(seat: Seat) -> Iterator[Value]:
    peer = seat.peer
    values = {
        "rank": str(seat.rank),
        "node": seat.node,
        "host": seat.host,
        "device": "+".join(seat.devices),
        "address": peer.address if peer else "",
        "port": str(peer.port) if peer else "",
        "bind": seat.bind or "",
        "python": seat.python,
        "command": shlex.join(seat.argv),
    }
    yield from (Value(name, value, seat.why[name]) for name, value in values.items() if value)
    if peer is None:
        yield Value("address", "none", "in a star, only rank 0 is dialled")


def _environment(seat: Seat, compiled: Compiled) -> Iterator[Value]:
    """Yield the variables of the generation that is deployed, or of the first."""
    deployed = (facts.job.deployed for facts in compiled.survey.hosts.values())
    generation = max((one.generation for one in deployed if one), default=1)
    variables = rank_variables(seat, compiled.resolution, compiled.inputs, generation)
    yield from (Value(one.name, one.value, one.why) for one in variables)
