"""Precision names and how many bits each takes for one weight."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

_BITS = {
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
}
_FLOAT = re.compile(r"f([1-9][0-9]?)e[0-9]+m[0-9]+")
_KNOWN = ", ".join(_BITS)


def bits_per_weight(name: str) -> float:
    """Return the width of *name*, trimmed; raise ValueError if there is no such precision."""
    trimmed = name.strip()
    if trimmed in _BITS:
        return _BITS[trimmed]
    if match := _FLOAT.fullmatch(trimmed):
        return float(match[1])
    raise ValueError(f"unknown precision {name!r}: one of {_KNOWN}, or f8e4m3 and its like")


def _precision(text: str) -> str:
    bits_per_weight(text)
    return text


PrecisionName = Annotated[
    str, AfterValidator(_precision), Field(json_schema_extra={"pattern": r"^\s*[a-z]\S*\s*$"})
]
