"""The two 16-bit floats: what numpy says of float16, and arithmetic with fractions of bfloat16."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Tuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rlxdeploy.runtime.algorithm import bfloat16, float16
from rlxdeploy.runtime.algorithm.native_fold import make_fold
from rlxdeploy.runtime.vocabulary import Dtype, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

EVERY = np.arange(1 << 16, dtype=np.uint16)
FINITE = EVERY[np.isfinite(EVERY.view(np.float16))]
INFINITY = 0x7F80


def number(bits: int) -> float:
    """Return the float32 with these *bits*."""
    value: Tuple[float] = struct.unpack("<f", struct.pack("<I", bits))
    return value[0]


def rounded(bits: int) -> int:
    """Return the bfloat16 nearest to a float32, by its definition."""
    upper, value = bits >> 16, number(bits)
    if math.isnan(value):
        return upper | 0x40
    if math.isinf(value):
        return upper
    # The magnitudes below and above; beyond the greatest one counts as if exponents went on.
    below, above = upper & 0x7FFF, (upper & 0x7FFF) + 1
    highest = Fraction(2) ** 128 if above == INFINITY else Fraction(number(above << 16))
    size = abs(Fraction(value))
    to_below, to_above = size - Fraction(number(below << 16)), highest - size
    nearest = below if (to_below, below % 2) < (to_above, above % 2) else above
    return upper & 0x8000 | nearest


@given(bits=st.integers(0, (1 << 32) - 1))
@example(bits=0x3F808000)  # a tie, and down to even
@example(bits=0x3F818000)  # a tie, and up to even
@example(bits=0x3F808001)
@example(bits=0x3F807FFF)
@example(bits=0x7F7FFFFF)  # the greatest becomes infinite
@example(bits=0x7F7F7FFF)  # the greatest that stays finite
@example(bits=0x7F800000)
@example(bits=0xFF800000)
@example(bits=0x7F800001)  # a NaN whose upper bits say infinity
@example(bits=0xFFFFFFFF)  # a NaN that would become zero
@example(bits=0x00000001)
@example(bits=0x00008000)
@example(bits=0x80018000)
@example(bits=0x80000000)
def test_a_float32_becomes_the_nearest_bfloat16(bits: int) -> None:
    """Ties go to even, what is too great becomes infinite, a NaN stays one of its sign."""
    wide = np.array([bits], np.uint32).view(np.float32)

    assert bfloat16.narrow(wide).tolist() == [rounded(bits)]
    assert wide.view(np.uint32).tolist() == [bits]


def test_every_bfloat16_widens_to_the_float32_it_is_the_upper_half_of() -> None:
    """And back, whatever it is: only a signalling NaN becomes a quiet one."""
    wide = bfloat16.widen(EVERY)

    assert (wide.view(np.uint32) == EVERY.astype(np.uint32) << 16).all()
    quiet = np.where(np.isnan(wide), EVERY | 0x40, EVERY)
    assert (bfloat16.narrow(wide) == quiet).all()


@pytest.mark.parametrize("least", [2.0**-136, 0.0], ids=["as it is", "taken for zeros"])
@pytest.mark.parametrize("bits", [EVERY, FINITE, EVERY[:0]], ids=["every", "finite", "none"])
def test_every_float16_widens_to_the_same_number(
    bits: NDArray[Any], least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As numpy says, bit for bit; also where the processor would take subnormals for zeros."""
    monkeypatch.setattr(float16, "_LEAST", np.float32(least))
    halves = bits.view(np.float16)
    wide = np.empty(bits.size, np.float32)

    float16.widen_into(halves, wide)

    numbers = ~np.isnan(halves)
    assert (np.isnan(wide) == ~numbers).all()
    expected = halves.astype(np.float32)
    assert (wide.view(np.uint32)[numbers] == expected.view(np.uint32)[numbers]).all()


@pytest.mark.parametrize("kind", [Kind.SUM, Kind.MEAN, Kind.MAX, Kind.MIN])
@pytest.mark.parametrize("dtype", [Dtype.FLOAT16, Dtype.BFLOAT16])
def test_narrow_floats_are_rounded_once_and_never_make_numpy_raise(
    dtype: Dtype, kind: Kind
) -> None:
    """Three ranks, every number there is among theirs, in a program that lets numpy raise."""
    chance = np.random.default_rng(3)
    parts = [chance.permutation(EVERY) for _ in range(3)]
    if dtype == Dtype.FLOAT16:
        parts = [part.view(np.float16) for part in parts]
    out = parts[0].copy()
    with np.errstate(all="raise"):
        make_fold(kind, dtype)(out, parts, 3 if kind == Kind.MEAN else 0)

    with np.errstate(all="ignore"):
        wide = [
            p.astype(np.float32) if dtype == Dtype.FLOAT16 else bfloat16.widen(p) for p in parts
        ]
        folds = {Kind.MAX: np.fmax, Kind.MIN: np.fmin}
        fold = folds.get(kind, np.add)
        total = fold(fold(wide[0], wide[1]), wide[2])
        if kind == Kind.MEAN:
            total /= np.float32(3)
        exact = total.astype(np.float16) if dtype == Dtype.FLOAT16 else bfloat16.narrow(total)
    same = out.view(np.uint16) == exact.view(np.uint16)
    assert (same | (np.isnan(total) & np.isnan(widened(out)))).all()


def widened(array: NDArray[Any]) -> NDArray[np.float32]:
    """Return 16-bit floats, of which bfloat16 is held in uint16, as float32."""
    return array.astype(np.float32) if array.dtype == np.float16 else bfloat16.widen(array)
