"""Who is which rank, on which device, at which peer address; what was passed over and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rlxdeploy.errors import Finding
from rlxdeploy.model.host import Host, Tree
from rlxdeploy.model.job import EnvValue


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A numeric address and a TCP port."""

    address: str
    port: int

    def __str__(self) -> str:
        return (
            f"[{self.address}]:{self.port}"
            if ":" in self.address
            else f"{self.address}:{self.port}"
        )


@dataclass(frozen=True, slots=True)
class Share:
    """What a rank holds of the model, as the inventory says; unwritten values are None.

    *layers* is `first:end`, half open; *max_ram_gb* counts decimal GB.
    """

    ckpt_dir: str | None
    precision: str
    kv_cache: str
    rng_seed: int
    layers: str | None
    max_ram_gb: float | None
    role: str


@dataclass(frozen=True, slots=True)
class Seat:
    """One rank's place.

    *index* is the node's place in the inventory and *slot* counts its ranks.  *devices* are the
    canonical labels, primary first; *visible* is what the vendor's variable
    (CUDA_VISIBLE_DEVICES …) is set to, None to leave it alone.  *peer* is None for a star's
    worker.  *why* maps each value that the rank has (rank, node, host, device, address, port, bind,
    python, command) to the line, probe or rule that gave it.
    """

    rank: int
    node: str
    index: int
    host: str
    slot: int
    local_rank: int
    local_world: int
    node_rank: int
    devices: tuple[str, ...]
    visible: str | None
    peer: Endpoint | None
    bind: str | None
    python: str
    argv: tuple[str, ...]
    env: Mapping[str, EnvValue]
    share: Share
    managed: bool = True
    why: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placed:
    """How the job is laid out and started on one host.

    The ranks run as *user* in *workdir*; *owner* reads the environment files.  *why* maps launch,
    user, owner, home, workdir and python to the line, probe or rule that gave it.
    """

    host: Host
    tree: Tree
    launch: str
    user: str
    owner: str
    workdir: str
    python: str
    why: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Resolution:
    """The group, settled: seats in rank order and the hosts they stand on, in inventory order.

    *merged* maps each further name of a machine to its name in *hosts*: nothing is planned there
    twice.  *absent* names the nodes that are left out, since their hosts did not answer.
    *placement* is for the mark of an apply (`survey.Deployed`).
    """

    job: str
    world: int
    topology: str
    wire: str
    security: str
    seats: tuple[Seat, ...]
    hosts: Mapping[str, Placed]
    master: Endpoint
    notices: tuple[Finding, ...] = ()
    merged: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    placement: str = ""

    @property
    def peers(self) -> tuple[str, ...]:
        """PEERS as every rank reads it: all ranks in a mesh, rank 0 alone in a star."""
        return tuple(str(seat.peer) for seat in self.seats if seat.peer is not None)

    def on(self, host: str) -> tuple[Seat, ...]:
        """Return the managed seats on *host*, in rank order."""
        return self._by_host.get(host, ())

    @cached_property
    def _by_host(self) -> Mapping[str, tuple[Seat, ...]]:
        # Every host asks for its own: looking through all seats each time is quadratic.
        found: dict[str, list[Seat]] = {}
        for seat in self.seats:
            if seat.managed:
                found.setdefault(seat.host, []).append(seat)
        return {host: tuple(seats) for host, seats in found.items()}
