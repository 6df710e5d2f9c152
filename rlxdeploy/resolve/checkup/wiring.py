"""How hosts stand to one another: who was reached, and whether their frames fit."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rlxdeploy.errors import Severity
from rlxdeploy.model.checkup import Ailment
from rlxdeploy.model.survey import Survey
from rlxdeploy.resolve.candidates import Subnet, candidates


@dataclass(frozen=True, slots=True)
class _Port:
    host: str
    interface: str
    mtu: int

    def __str__(self) -> str:
        return f"{self.host} ({self.interface})"


def unreached(survey: Survey, written: Mapping[str, str | None]) -> Iterator[Ailment]:
    """Tell why hosts did not answer; only for those *written*, with their aliases, is it an error.

    Found hosts that refuse us are a warning, as in a plan: there they are not taken.
    """
    for name, why in survey.failed.items():
        if name not in written:
            remedy = f"let `ssh {name} true` work from here, or write it in exclude"
            yield Ailment(Severity.WARNING, name, "reach", why, remedy)
            continue
        alias = written[name]
        remedy = f"`ssh {alias} true` has to work from here without asking anything"
        yield Ailment(Severity.ERROR, name, "reach", why, remedy if alias else "")


def frames(survey: Survey) -> Iterator[Ailment]:
    """Warn where an interface takes shorter or longer frames than the others of its subnet.

    Short packets pass and full ones vanish: the group forms, and the first big array stands still.
    """
    told = set()
    for subnet, attached in _attached(survey).items():
        usual, _ = max(Counter(one.mtu for one in attached).items(), key=lambda pair: pair[::-1])
        like = next(one for one in attached if one.mtu == usual)
        for one in attached:
            if one.mtu != usual and one not in told:
                told.add(one)
                what = f"{one.interface} has MTU {one.mtu} in {subnet}, {like} has {usual}"
                remedy = "set one MTU on all of them and on the switch: full packets get lost"
                yield Ailment(Severity.WARNING, one.host, "mtu", what, remedy)


def _attached(survey: Survey) -> Mapping[Subnet, Sequence[_Port]]:
    """Return the interfaces by the subnet in which peers could dial them."""
    networks = {name: facts.network for name, facts in survey.hosts.items()}
    sizes = {
        (name, interface.name): interface.mtu
        for name, network in networks.items()
        for interface in network.interfaces
    }
    found: dict[Subnet, list[_Port]] = {}
    for name, here in candidates(networks).items():
        for one in here:
            if one.against is None:
                size = sizes[name, one.interface]
                found.setdefault(one.subnet, []).append(_Port(name, one.interface, size))
    return found
