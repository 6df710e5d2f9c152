"""The order and the time in which the addresses of a sweep are tried."""

from collections.abc import Iterator

from rlxdeploy.facts.sweep import Pace, Sweep, count

# While a router's own address is still asked for, the kernel keeps the last hundred or two of the
# connects that go there, and drops the others in silence.
_BEFORE_ROUTER = 64
_ROUTER_S = 0.08

Pair = tuple[int, int]


class Feed:
    """Pairs of an address's number and a port, for whoever knows the time since the start.

    Addresses on our own links come at their pace.  Others come at once, but for the first: their
    router is given a moment to be found, which ends early once any of them is `heard`.
    """

    def __init__(self, sweep: Sweep, ports: tuple[int, ...], pace: Pace) -> None:
        self.sweep, self.ports, self.pace = sweep, ports, pace
        self._on_link, self._routed = _Lane(sweep.on_link, ports), _Lane(sweep.routed, ports)
        self._router_found = False

    @property
    def total(self) -> int:
        """How many pairs there are."""
        return self._on_link.total + self._routed.total

    @property
    def begun(self) -> int:
        """How many have been handed out."""
        return self._on_link.begun + self._routed.begun

    def heard(self, number: int) -> None:
        """Take note that somebody answered for this address, whatever he said."""
        if not self._router_found:
            self._router_found = any(number in span for span in self.sweep.routed)

    def can_give(self, elapsed: float) -> bool:
        """Tell whether `take` has something now, *elapsed* seconds after the start."""
        return any(lane.has(most) for lane, most in self._lanes(elapsed))

    def take(self, elapsed: float) -> Pair | None:
        """Return what to try now, None where nothing may be begun."""
        return next((lane.next() for lane, most in self._lanes(elapsed) if lane.has(most)), None)

    def _lanes(self, elapsed: float) -> Iterator[tuple["_Lane", int]]:
        """Yield each lane with how many of it may have been begun by now."""
        yield self._on_link, self.pace.begun_by(elapsed) * len(self.ports)
        free = self._router_found or elapsed >= _ROUTER_S
        yield self._routed, self._routed.total if free else _BEFORE_ROUTER


class _Lane:
    """Spans of addresses, each with all ports, handed out in order."""

    def __init__(self, spans: tuple[range, ...], ports: tuple[int, ...]) -> None:
        self.total, self.begun = count(spans) * len(ports), 0
        self._pairs = ((number, port) for span in spans for number in span for port in ports)

    def has(self, most: int) -> bool:
        return self.begun < min(most, self.total)

    def next(self) -> Pair:
        self.begun += 1
        return next(self._pairs)
