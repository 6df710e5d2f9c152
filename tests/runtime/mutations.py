"""Valid bytes with mistakes in them, for whoever reads bytes from others."""

from __future__ import annotations

from typing import List

from hypothesis import Phase, settings
from hypothesis import strategies as st

# Looks for a planted bug: the same way every time, and no longer once it is found.
SEARCH = settings(
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    max_examples=1000,
    report_multiple_bugs=False,
)
_TELLING = [0, 1, 2, 3, 4, 5, 6, 0x7F, 0x80, 0xFF]


@st.composite
def mutated(draw: st.DrawFn, valid: List[bytes]) -> bytes:
    """Return some of *valid* in a row, with bytes changed, lost or added."""
    chosen = draw(st.lists(st.sampled_from(valid), min_size=1, max_size=5))
    return draw(mistaken(b"".join(chosen)))


@st.composite
def mistaken(draw: st.DrawFn, valid: bytes) -> bytes:
    """Return *valid*, which is not empty, with bytes changed, lost or added."""
    wire = bytearray(valid)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(wire) - 1))
        wire[at] = draw(st.sampled_from(_TELLING))
    cut = draw(st.integers(0, len(wire)))
    lost = draw(st.integers(0, 3))
    return bytes(wire[:cut] + draw(st.binary(max_size=20)) + wire[cut + lost :])
