"""When a rank that rank 0 refuses should stop asking."""

from __future__ import annotations

import math
from typing import Optional

from rlxdeploy.runtime.wire.handshake import HandshakeRefused, Identity


class Verdict:
    """Whether rank 0, where PEERS say it is, keeps refusing a rank of *plan* for *seconds*.

    No group forms without rank 0, so its refusal ends the join: `final` is then what to raise.  A
    rank 0 of another plan is about to be replaced and counts for nothing, and what anybody says who
    dials in counts for nothing either: it may be a stranger.
    """

    def __init__(self, plan: str, seconds: float) -> None:
        self._plan, self._seconds = plan, seconds
        self._since = self._last = -math.inf
        self.final: Optional[HandshakeRefused] = None

    def refused(self, error: HandshakeRefused, by: Optional[Identity], now: float) -> None:
        """Take note that the rank 0 dialled, which says it is *by*, and this rank do not match."""
        paused = now - self._last > self._seconds
        if paused or by is None or by.plan != self._plan:
            self._since = now
        self._last = now
        if now - self._since >= self._seconds:
            self.final = error
