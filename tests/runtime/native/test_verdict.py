"""Which refusals end a join, without a socket and without waiting."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, NamedTuple, Optional

import pytest

from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.verdict import Verdict
from rlxdeploy.runtime.wire.identity import HandshakeRefused, Identity

LIMITS = Limits(refused_s=3, stale_s=6)
# Rank 1 of 4 misses rank 0, which it dials, and rank 2, which should dial in.
OWN = Identity("job", "plan", 4, 1, "a" * 32, "psk")
TWO = replace(OWN, rank=2)
MISSING = (0, 2)
DEADLINE = 100.0


class Refused(NamedTuple):
    """One refusal, its age at the deadline, and whether it ends the join."""

    counts: bool
    dialled: Optional[int] = None
    by: Optional[Identity] = TWO
    proven: bool = False
    security: str = "psk"
    age: float = 1.0


REFUSALS: Dict[str, Refused] = {
    "dialled in, unproven": Refused(counts=False),
    "dialled in, proven": Refused(counts=True, proven=True),
    "dialled in, of another version": Refused(counts=False, by=None),
    "dialled in, proven, as a rank that is here": Refused(
        counts=False, proven=True, by=replace(OWN, rank=3)
    ),
    "dialled in, proven, and gone": Refused(counts=False, proven=True, age=7),
    "rank 0, dialled": Refused(counts=True, dialled=0, by=replace(OWN, rank=0)),
    "rank 0, dialled, of another version": Refused(counts=True, dialled=0, by=None),
    "rank 0, dialled, and gone": Refused(counts=False, dialled=0, age=7),
    "another rank, dialled, unproven": Refused(counts=False, dialled=2),
    "another rank, dialled, proven": Refused(counts=True, dialled=2, proven=True),
    "without keys": Refused(counts=True, security="none"),
    "without keys, of another version": Refused(counts=True, security="none", by=None),
    "without keys, as no rank": Refused(
        counts=False, security="none", by=replace(OWN, rank=10**30)
    ),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
def test_only_what_is_proven_or_from_rank_0_ends_a_join(case: Refused) -> None:
    """Without keys every word counts; what has not come again does not."""
    verdict = Verdict(replace(OWN, security=case.security), LIMITS)
    error = HandshakeRefused("refused")
    error.proven = case.proven
    verdict.refused(error, case.dialled, case.by, DEADLINE - case.age)

    assert verdict.overdue(MISSING, DEADLINE) is (error if case.counts else None)
    assert verdict.final is None


def test_another_version_ends_no_join_that_misses_none_who_dials_in() -> None:
    """Whoever it was, the ranks that dial this one are here."""
    verdict = Verdict(replace(OWN, security="none"), LIMITS)
    verdict.refused(HandshakeRefused("another version"), None, None, DEADLINE)

    assert verdict.overdue((0,), DEADLINE) is None


@pytest.mark.parametrize(("plan", "final"), [("plan", True), ("old", False)])
def test_only_a_rank_0_of_this_plan_ends_a_join_early(plan: str, final: bool) -> None:  # noqa: FBT001 - a case
    """It refuses again and again for three seconds; an older one is about to be replaced."""
    verdict = Verdict(OWN, LIMITS)
    leader = replace(OWN, rank=0, plan=plan)
    finals = []
    for second in range(5):
        verdict.refused(HandshakeRefused("another key"), 0, leader, float(second))
        finals.append(verdict.final is not None)

    assert finals == [False, False, False, final, final]
