"""Which refusals end the join of a rank, and when."""

from __future__ import annotations

import math
from typing import Dict, Optional, Sequence, Tuple

from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.wire.identity import HandshakeRefused, Identity


class Verdict:
    """What the rank *own* is to raise once waiting for the ranks that it misses is of no use.

    A refusal counts where whoever is at the other end has proven that it holds the key, where it
    is rank 0, dialled where PEERS say it is, or where the job has no key, so that nobody can prove
    anything.  Any other may be a stranger's, and a stranger ends no join.  Nor does one that has
    not come again: an older process was replaced, and its successor may be late.

    No group forms without rank 0: once it has refused this rank again and again, `final` is what
    to raise at once.  A rank 0 of another plan is about to be replaced and counts only at the
    deadline.
    """

    def __init__(self, own: Identity, limits: Limits) -> None:
        self._own, self._limits = own, limits
        self._since = self._last = -math.inf
        self._counts: Dict[Optional[int], Tuple[HandshakeRefused, float]] = {}
        self.final: Optional[HandshakeRefused] = None

    def begin(self) -> None:
        """Forget the refusals of an earlier attempt."""
        self._counts = {}

    def refused(
        self, error: HandshakeRefused, dialled: Optional[int], by: Optional[Identity], now: float
    ) -> None:
        """Take note of a refusal between this rank and whoever says it is *by*.

        *dialled* is the rank that was dialled, None where the other end dialled in.
        """
        if dialled == 0:
            self._by_leader(error, by, now)
        rank = dialled if dialled is not None or by is None else by.rank
        somebody = rank is None or 0 <= rank < self._own.world
        if somebody and (error.proven or dialled == 0 or self._own.security != "psk"):
            self._counts[rank] = (error, now)

    def came(self, rank: int) -> None:
        """Forget what was refused in the name of *rank*: it is here."""
        self._counts.pop(rank, None)

    def overdue(self, missing: Sequence[int], now: float) -> Optional[HandshakeRefused]:
        """Return what to raise at the deadline with *missing* not here; None if nothing counts."""
        # Of another version nobody knows which rank it is, only that it dialled in: a higher one.
        unnamed = [None] if any(rank > self._own.rank for rank in missing) else []
        for rank in (*missing, *unnamed):
            error, at = self._counts.get(rank, (None, 0.0))
            if error is not None and now - at <= self._limits.stale_s:
                return error
        return None

    def _by_leader(self, error: HandshakeRefused, by: Optional[Identity], now: float) -> None:
        seconds = self._limits.refused_s
        paused = now - self._last > seconds
        if paused or by is None or by.plan != self._own.plan:
            self._since = now
        self._last = now
        if now - self._since >= seconds:
            self.final = error
