"""Who was turned away at the door while a group formed: how often, why, and from where."""

from __future__ import annotations

from typing import Callable, Dict, List, Set, Tuple

from rlxdeploy.runtime.address import Address

# A reason may quote what a stranger has said.
_MAX_REASON = 300


class Strangers:
    """Counts who was turned away by reason, and says each reason once for each host.

    Strangers choose what they say and how often they come, so only the latest *most* reasons are
    kept, and *most* lines said.
    """

    def __init__(self, say: Callable[[str], None], most: int) -> None:
        self.count = 0
        self._say, self._most = say, most
        self._met: Dict[str, Tuple[int, Address]] = {}
        self._said: Set[Tuple[str, str]] = set()
        self._spoken_of = 0

    def turned_away(self, address: Address, reason: str) -> None:
        """Count whoever came from *address*."""
        reason = reason[:_MAX_REASON]
        times, _ = self._met.pop(reason, (0, address))
        self._met[reason] = (times + 1, address)
        if len(self._met) > self._most:
            del self._met[next(iter(self._met))]
        self.count += 1
        one = (reason, address.host)
        if one not in self._said and len(self._said) < self._most:
            self._said.add(one)
            self._spoken_of += 1
            self._say(f"turned away {address}: {reason}")

    def lines(self) -> List[str]:
        """Return the reasons, the latest first, with how often and from where last."""
        met = list(self._met.items())[::-1]
        lines = [
            f"once, from {address}: {reason}"
            if times == 1
            else f"{times} times, last from {address}: {reason}"
            for reason, (times, address) in met
        ]
        others = self.count - sum(times for times, _ in self._met.values())
        return [*lines, f"{others} for other reasons before"] if others else lines

    def sum_up(self) -> None:
        """Say how often they came, unless each has been spoken of."""
        if self.count > self._spoken_of:
            self._spoken_of = self.count
            self._say(f"turned away while the group formed: {'; '.join(self.lines())}")
