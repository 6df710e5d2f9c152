"""A standby that takes over: it stands where its principal stood, with the principal's ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlxdeploy.errors import UsageError
from rlxdeploy.model.addresses import HostPort, parse_address
from rlxdeploy.model.vocabulary import Role
from rlxdeploy.resolve.entries import Entry
from rlxdeploy.resolve.report import Report


@dataclass(frozen=True, slots=True)
class Promotion:
    """Who is to take over, and the ranks that hosts had in the last apply, by host name.

    Each of *wanted* is a standby's address or name, or the address of the node it stands by for.
    """

    wanted: tuple[str, ...] = ()
    recorded: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


NOBODY = Promotion()


def promoted(found: Sequence[Entry], promotion: Promotion, report: Report) -> list[Entry]:
    """Return *found* with every wanted standby active in its principal's place.

    The principal is draining then.  Raises UsageError where no standby is meant; one that cannot
    take over is an error in *report*.
    """
    cast = [*found]
    for text in promotion.wanted:
        standby = _meant(text, cast)
        principal = _principal(standby, cast)
        if principal is None:
            key, what = standby.key("standby_for"), f"{standby.name} stands by for no active node"
            report.error(key, what, "write the addr of the node that it is to replace")
        elif principal.node.slots != standby.node.slots:
            what = f"{standby.name} has {standby.node.slots} slots, {principal.name} has"
            report.error(standby.key("slots"), f"{what} {principal.node.slots}")
        else:
            cast.remove(standby)
            cast[cast.index(principal)] = _successor(standby, principal)
            cast.append(_retired(principal))
    return cast


def _meant(text: str, cast: Sequence[Entry]) -> Entry:
    try:
        address = parse_address(text)
    except ValueError:
        address = None
    standbys = [entry for entry in cast if entry.node.role is Role.STANDBY]
    for entry in standbys:
        if text == entry.name or (address is not None and address == entry.addr):
            return entry
    for entry in standbys:
        if address is not None and address == _stands_by_for(entry):
            return entry
    known = ", ".join(f"{one.name} (for {one.node.standby_for or 'nobody'})" for one in standbys)
    raise UsageError(f"--promote {text}: no standby has this address; there is {known or 'none'}")


def _stands_by_for(entry: Entry) -> HostPort | None:
    written = entry.node.standby_for
    return None if written is None else parse_address(written)


def _principal(standby: Entry, cast: Sequence[Entry]) -> Entry | None:
    wanted = _stands_by_for(standby)
    active = (entry for entry in cast if entry.node.role.has_rank)
    return next((entry for entry in active if wanted and entry.addr == wanted), None)


def _successor(standby: Entry, principal: Entry) -> Entry:
    changes = {
        "role": Role.ACTIVE,
        "standby_for": None,
        "rank": principal.node.rank,
        "layers": standby.node.layers or principal.node.layers,
    }
    return replace(standby, node=standby.node.model_copy(update=changes), principal=principal)


def _retired(principal: Entry) -> Entry:
    changes = {"role": Role.DRAINING, "rank": None}
    return replace(principal, node=principal.node.model_copy(update=changes))
