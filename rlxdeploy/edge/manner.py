"""How a plan is carried out: by whom, how many hosts at once, and how long is waited for what."""

import secrets
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from rlxdeploy.edge.script import Terms

# Hears of each host and what it has just done; called from several threads.
Tell = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds.  *stage* is for all hosts together, from the first connection to the last STAGED.

    *go* is for one host's steps, and for those of going back: a rank may take its stop timeout of
    30 s, and ten more pass before it is killed.  *hold* is how long a host keeps the lock for us
    while we watch the ranks join.  *again* is how long a lost session is tried to be taken up.
    *bye* is for a host to undo or unlock, and *rival* for another apply to have that done.
    """

    stage: float = 300.0
    go: float = 120.0
    hold: float = 3600.0
    again: float = 60.0
    bye: float = 15.0
    rival: float = 20.0


@dataclass(frozen=True, slots=True)
class Manner:
    """How a plan is carried out.

    *by* is what others read in the lock, one line: who does what, from where.  *forks* hosts are
    worked on at once.  Before GO *max_fail* of the *spare* hosts may fail, and the others go on
    without them.  *ledger* is entered once all are STAGED, before any is told GO, and left before
    any is let go; where nobody is told GO it is never entered.
    """

    by: str
    forks: int = 32
    max_fail: int = 0
    spare: Collection[str] = ()
    patience: Patience = field(default_factory=Patience)
    tell: Tell = lambda _host, _what: None
    ledger: AbstractContextManager[object] = field(default_factory=nullcontext)

    def goes_without(self, failed: Collection[str]) -> bool:
        """Tell whether the others go on although *failed* have failed before GO."""
        return len(failed) <= self.max_fail and all(name in self.spare for name in failed)

    def terms(self) -> Terms:
        """Return what one host is told, with a marker of its own."""
        # A host that began first waits for the slowest; our own deadline comes before its.
        stage_s = int(self.patience.stage) + 30
        return Terms(secrets.token_hex(16), self.by, stage_s, int(self.patience.hold))
