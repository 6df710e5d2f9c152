"""Precision names."""

import pytest

from rlxdeploy.model.precision import bits_per_weight

WIDTHS = {
    "f32": 32.0,
    "f16": 16.0,
    "bf16": 16.0,
    "mixed": 16.0,
    "fp8": 8.0,
    "fp8e5m2": 8.0,
    "mxfp8": 8.0,
    "int8": 8.5,
    "q8_0": 8.5,
    "nvfp4": 4.25,
    "mxfp4": 4.25,
    "f8": 8.0,
    "f64": 64.0,
    "f8e4m3": 8.0,
    "f6e3m2": 6.0,
    " f16 ": 16.0,
}


@pytest.mark.parametrize(("name", "bits"), WIDTHS.items(), ids=WIDTHS.keys())
def test_a_precision_has_a_width(name: str, bits: float) -> None:
    """Names are trimmed, and floats of a written layout take their first number."""
    assert bits_per_weight(name) == bits


@pytest.mark.parametrize(
    "name", ["f9", "f8e4", "f8m3", "f8e4m", "bf", "f8e4mx", "fp8e4m3", "F16", "", "f0e4m3"]
)
def test_an_unknown_precision_is_refused(name: str) -> None:
    """Case counts, and half a layout is none."""
    with pytest.raises(ValueError, match="unknown precision") as caught:
        bits_per_weight(name)

    assert repr(name) in str(caught.value)
