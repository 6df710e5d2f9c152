"""The runtime's one tree of errors: the class says what happened, attributes carry the evidence.

`exit_code` is how the built-in node ends: 75 asks whoever started it to start it again, 78 says
that starting it again changes nothing.
"""

from __future__ import annotations

from typing import ClassVar, Mapping, Optional, Sequence


def ranks_text(ranks: Sequence[int]) -> str:
    """Return `rank 2` or `ranks 2, 5`; the first 16 stand for a longer list."""
    shown = ", ".join(map(str, ranks[:16]))
    more = f" and {len(ranks) - 16} more" if len(ranks) > 16 else ""  # noqa: PLR2004 - as shown
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {shown}{more}"


class GroupError(Exception):
    """Base of every error the runtime raises on purpose; anything else is a bug of ours."""

    exit_code: ClassVar[int] = 75


class RefusedError(GroupError):
    """Starting again with the same settings will be refused again."""

    exit_code = 78


class SettingsError(RefusedError):
    """A setting does not say what it may: *variable* is its name, *value* what it said."""

    def __init__(self, variable: str, value: Optional[str], allowed: str) -> None:
        said = "is not set" if value is None else f"is {value!r}"
        super().__init__(f"{variable} {said}; allowed: {allowed}")
        self.variable, self.value, self.allowed = variable, value, allowed


class NotSupported(RefusedError):
    """A setting that has a meaning, but none this version carries out."""


class PortInUse(RefusedError):
    """Another process listens where this rank must; *holder* names it where the kernel tells."""

    def __init__(self, host: str, port: int, holder: Optional[str]) -> None:
        by = f" by {holder}" if holder else " (its holder is not visible to this user)"
        super().__init__(
            f"{host} port {port} is in use{by}; stop it, or give this rank another address in PEERS"
        )
        self.host, self.port, self.holder = host, port, holder


class PlanMismatch(RefusedError):
    """Ranks of different plans have met; *plans* says what each differing rank brought."""

    def __init__(self, ours: str, plans: Mapping[int, str]) -> None:
        theirs = "; ".join(f"rank {rank} brought {plan}" for rank, plan in plans.items())
        super().__init__(f"this rank brought {ours}, but {theirs}")
        self.ours, self.plans = ours, dict(plans)


class SelfCheckFailed(RefusedError):
    """The group computes wrong results: nothing it says can be trusted."""


class JoinTimeout(GroupError):
    """The group did not form in time; *missing* maps each absent rank to what was tried.

    *strangers* counts the connections that were turned away; *turned_away* says from where and why.
    """

    def __init__(
        self,
        seconds: float,
        missing: Mapping[int, str],
        strangers: int = 0,
        turned_away: Sequence[str] = (),
    ) -> None:
        lines = [f"\n  rank {rank}: {why}" for rank, why in missing.items()]
        if strangers:
            were = "connection was" if strangers == 1 else "connections were"
            lines += [f"\n  {strangers} {were} turned away:"]
            lines += [f"\n    {each}" for each in turned_away]
        super().__init__(
            f"the group did not form within {seconds:g} s; still missing "
            f"{ranks_text(list(missing))}:{''.join(lines)}"
        )
        self.missing = dict(missing)
        self.strangers, self.turned_away = strangers, tuple(turned_away)


class PeerLost(GroupError):
    """The link to *rank* at *address* ended while *op* needed it; the group is finished."""

    def __init__(self, rank: int, address: str, op: str, why: str) -> None:
        super().__init__(f"lost rank {rank} ({address}) during {op}: {why}")
        self.rank, self.address, self.op, self.why = rank, address, op, why

    # What is forwarded from rank to rank is the reason in words.
    FINISHED = "it finished and left the group"

    @property
    def finished(self) -> bool:
        """Whether *rank* said goodbye (native wire)."""
        return self.why == self.FINISHED


class CollectiveTimeout(GroupError):
    """*op* reached its deadline; *missing* are the ranks it still waited for."""

    def __init__(self, op: str, seconds: float, missing: Sequence[int]) -> None:
        super().__init__(
            f"{op} did not end within {seconds:g} s; still waiting for {ranks_text(missing)}"
        )
        self.op, self.seconds, self.missing = op, seconds, tuple(missing)


class CollectiveMismatch(GroupError):
    """Ranks made different calls; *calls* maps each rank that was compared to what it called."""

    def __init__(self, calls: Mapping[int, str]) -> None:
        said = "; ".join(f"rank {rank} called {call}" for rank, call in sorted(calls.items()))
        super().__init__(f"the ranks made different calls: {said}")
        self.calls = dict(calls)


class GroupClosed(GroupError):
    """The group was closed, aborted or has failed; leave and join again."""


class NoLink(GroupError):
    """Two ranks of a star that are both not rank 0 have no connection of their own."""

    def __init__(self, rank: int, other: int) -> None:
        super().__init__(
            f"rank {rank} has no link to rank {other}: in a star only rank 0 has links to all; "
            "use a collective, or TOPOLOGY=mesh"
        )
        self.rank, self.other = rank, other


class WireError(GroupError):
    """A peer sent bytes that are not what the wire format or the call allows."""


class LengthMismatch(WireError):
    """*rank* sent *got* bytes where *op* needs *expected*: unequal sizes on the ranks."""

    def __init__(self, op: str, rank: int, expected: int, got: int) -> None:
        super().__init__(f"{op}: rank {rank} sent {got} bytes where this rank expects {expected}")
        self.op, self.rank, self.expected, self.got = op, rank, expected, got
