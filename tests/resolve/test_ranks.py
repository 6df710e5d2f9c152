"""Ranks stay put unless their number is gone or pinned elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.resolve.ranks import Claim, numbers

a, b, c, d = "abcd"

CASES = {
    "file order at first": ([Claim(a), Claim(b), Claim(c)], [0, 1, 2]),
    "a pin goes before file order": ([Claim(a), Claim(b, pinned=0), Claim(c)], [1, 0, 2]),
    "a host added in the middle": ([Claim(a, held=0), Claim(b), Claim(c, held=1)], [0, 2, 1]),
    "the last host left": ([Claim(a, held=0), Claim(b, held=1)], [0, 1]),
    "a host in the middle left": (
        [Claim(a, held=0), Claim(c, held=2), Claim(d, held=3)],
        [0, 2, 1],
    ),
    "one left, one came": ([Claim(a, held=0), Claim(c, held=2), Claim(d)], [0, 2, 1]),
    "the file was sorted anew": ([Claim(c, held=2), Claim(a, held=0), Claim(b, held=1)], [2, 0, 1]),
    "a pin on a held number": ([Claim(a, held=0), Claim(b, held=1, pinned=0)], [1, 0]),
    "two hosts claim one number": ([Claim(a, held=0), Claim(b, held=0)], [0, 1]),
    "slots ascend within a host": (
        [Claim(a, held=0), Claim(a, held=3), Claim(a), Claim(b, held=1)],
        [0, 2, 3, 1],
    ),
}


@pytest.mark.parametrize(("claims", "ranks"), CASES.values(), ids=CASES.keys())
def test_the_fewest_ranks_move(claims: list[Claim], ranks: list[int]) -> None:
    """Pins, then deployed numbers, then the holes."""
    assert numbers(claims) == ranks


@st.composite
def claimed(draw: st.DrawFn) -> list[Claim]:
    world = draw(st.integers(1, 12))
    pins = draw(st.permutations(range(world)))
    return [
        Claim(
            draw(st.sampled_from("abc")),
            pins[index] if draw(st.booleans()) else None,
            draw(st.none() | st.integers(0, 15)),
        )
        for index in range(world)
    ]


@given(claimed())
def test_ranks_are_a_permutation_that_honours_pins_and_stays(claims: list[Claim]) -> None:
    """Each rank is given once, pins are kept, and numbering what was numbered changes nothing."""
    ranks = numbers(claims)
    again = [
        Claim(claim.group, claim.pinned, rank) for claim, rank in zip(claims, ranks, strict=True)
    ]

    assert sorted(ranks) == list(range(len(claims)))
    assert all(claim.pinned in (None, rank) for claim, rank in zip(claims, ranks, strict=True))
    assert numbers(again) == ranks
