"""Which links are to be tried before a change, and which of them are not dialled, and why.

The links are the runtime's own, in its directions: in a mesh the higher rank dials the lower one
on the native wire and the other way round on rlx; in a star every worker dials rank 0.  Of a big
mesh a sample is tried.
"""

from collections.abc import Iterator, Mapping, Sequence

from rlxdeploy.model.plan import Plan
from rlxdeploy.model.preflight import Link, Post, Preflight, Trial
from rlxdeploy.model.record import Record
from rlxdeploy.model.resolution import Endpoint, Resolution, Seat
from rlxdeploy.model.survey import HostFacts, Survey
from rlxdeploy.model.vocabulary import Topology, Wire
from rlxdeploy.plan.epoch import RUNNING

_SAME = "neither PEERS nor WORLD changes"

# In a mesh of more ranks than that each dials those at 1, 2, 4, 8 … places from its own: links
# grow with the square of the ranks, and what stands in the way is in the way of a host or a port.
EVERY_LINK = 256

# Rank by host to the address that the last apply gave it.
Recorded = Mapping[tuple[str, int], str]


def preflight(
    plan: Plan, resolution: Resolution, survey: Survey, record: Record | None
) -> Preflight:
    """Return what to try before *plan* is carried out; *record* is that of the last apply."""
    if why_not := needless(plan, resolution, survey, record):
        return Preflight(why_not=why_not)
    recorded = {(row.host, row.rank): row.address for row in record.ranks} if record else {}
    seats = {seat.rank: seat for seat in resolution.seats}
    held = {
        rank: _held(seat, survey.hosts.get(seat.host), recorded) for rank, seat in seats.items()
    }
    links = tuple(_links(resolution))
    spared = {link: why for link in links if (why := _spared(link, seats, held, resolution.wire))}
    dialled = [link for link in links if link not in spared]
    if not dialled:
        return Preflight(links=links, spared=spared, why_not=_all_alike(spared))
    listening = {link.listener for link in dialled if link.ours}
    hosts = {link.source for link in dialled} | {seats[rank].host for rank in listening}
    trials = {
        name: Trial(
            placed.host,
            placed.python,
            tuple(_post(seat) for seat in resolution.on(name) if seat.rank in listening),
        )
        for name, placed in resolution.hosts.items()
        if name in hosts
    }
    return Preflight(trials, links, spared, untried=_untried(resolution, links))


def needless(plan: Plan, resolution: Resolution, survey: Survey, record: Record | None) -> str:
    """Return why no link has to be tried before *plan*, "" where PEERS or WORLD may change."""
    if resolution.world == 1:
        return "one rank has no peers"
    ranked = [name for name in resolution.hosts if resolution.on(name)]
    if not ranked:
        return "every rank runs elsewhere"
    # Every rank is told both, so no host could stay as it is.
    if any((part := plan.hosts.get(name)) is None or part.empty for name in ranked):
        return _SAME
    if record is None:
        return ""
    before = {(row.rank, row.host, row.address) for row in record.ranks}
    same = before == {(row.rank, row.host, row.address) for row in plan.ranks}
    marks = [survey.hosts[name].job.deployed for name in resolution.hosts]
    # A host that lost the job, or has another release of it, is no witness of that record.
    known = all(mark is not None and mark.release == record.release for mark in marks)
    return _SAME if same and known else ""


def is_sampled(world: int, topology: str) -> bool:
    """Tell whether only some of the links of such a group are tried."""
    return topology == Topology.MESH and world > EVERY_LINK


def _untried(resolution: Resolution, links: Sequence[Link]) -> int:
    """Return how many links the group will have besides *links*."""
    if not is_sampled(resolution.world, resolution.topology):
        return 0
    return resolution.world * (resolution.world - 1) // 2 - len(links)


def _all_alike(spared: Mapping[Link, str]) -> str:
    first, *others = dict.fromkeys(spared.values()) or ["no rank dials another"]
    return first + (f" (and so for {len(others)} more)" if others else "")


def _links(resolution: Resolution) -> Iterator[Link]:
    for at, seat in enumerate(resolution.seats):
        for other in _dialled_from(at, resolution):
            if other.peer is not None:
                yield Link(
                    seat.rank, other.rank, seat.host, other.host, other.peer, ours=other.managed
                )


def _dialled_from(at: int, resolution: Resolution) -> tuple[Seat, ...]:
    if resolution.topology == Topology.STAR:
        return resolution.seats[:1] if at else ()
    native, seats = resolution.wire == Wire.NATIVE, resolution.seats
    if not is_sampled(resolution.world, resolution.topology):
        return seats[:at] if native else seats[at + 1 :]
    steps = (1 << power for power in range(resolution.world.bit_length()))
    places = (at - step if native else at + step for step in steps)
    return tuple(seats[place] for place in places if 0 <= place < len(seats))


def _held(seat: Seat, facts: HostFacts | None, recorded: Recorded) -> int | None:
    """Return the running rank of this job that has the place of *seat*, if any.

    A rank whose address nobody has written down may be anywhere.
    """
    if facts is None or seat.peer is None:
        return None
    for holder in facts.holders:
        bound = seat.bind or seat.peer.address
        if holder.rank is not None and holder.blocks(bound, seat.peer.port):
            return holder.rank
    own = str(seat.peer)
    for seen in facts.job.ranks:
        if seen.active in RUNNING and recorded.get((seat.host, seen.rank), own) == own:
            return seen.rank
    return None


def _spared(
    link: Link, seats: Mapping[int, Seat], held: Mapping[int, int | None], wire: str
) -> str:
    """Return why *link* is not dialled, "" where it is."""
    if not seats[link.dialler].managed:
        return f"rank {link.dialler} runs elsewhere, so nobody can be asked to dial from there"
    if not link.ours and wire != Wire.NATIVE:
        # The public RLX takes whoever calls first for a rank, and gives up if it is none.
        return f"rank {link.listener} runs elsewhere, and no stranger may call on the rlx wire"
    if (rank := held[link.listener]) is not None:
        return f"rank {rank} of this job runs at {link.to}"
    return ""


def _post(seat: Seat) -> Post:
    assert seat.peer is not None  # noqa: S101 - only who is dialled listens
    return Post(seat.rank, Endpoint(seat.bind or seat.peer.address, seat.peer.port))
