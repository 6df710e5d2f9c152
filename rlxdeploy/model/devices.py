"""Device labels, their aliases, and lists of them as a person writes them."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from rlxdeploy.model.hints import did_you_mean

LABELS: dict[str, tuple[str, ...]] = {
    "cpu": (),
    "metal": ("mtl",),
    "mlx": (),
    "ane": ("coreml", "neural-engine"),
    "cuda": ("nvidia",),
    "rocm": ("hip", "amd"),
    "oneapi": ("levelzero", "level-zero", "l0", "intel", "sycl"),
    "xdna": ("aie", "aie2", "ryzenai", "ryzen-ai", "amdnpu"),
    "gpu": ("wgpu",),
    "vulkan": ("vk",),
    "opengl": ("gl",),
    "directx": ("dx12", "d3d12"),
    "webgpu": (),
    "tpu": (),
    "hexagon": ("htp", "qnn"),
    "egpu": ("tbgpu", "thunderbolt"),
}

_CANONICAL = {word: label for label, aliases in LABELS.items() for word in (label, *aliases)}


def canonical_label(word: str) -> str:
    """Return the canonical label of *word*, in any case; raise ValueError if it has none."""
    try:
        return _CANONICAL[word.lower()]
    except KeyError:
        hint = did_you_mean(word, _CANONICAL)
        raise ValueError(f"unknown device {word!r}" + (f"; {hint}" if hint else "")) from None


def parse_devices(text: str) -> tuple[str, ...]:
    """Return the canonical labels of a device list, the primary first, each once.

    `+`, `,`, `;` and blanks all separate.  Raises ValueError, naming *text*, if it is empty or
    holds an unknown label.
    """
    words = [word for word in re.split(r"[+,;\s]+", text) if word]
    if not words:
        raise ValueError(f"bad device {text!r}: it names none")
    try:
        return tuple(dict.fromkeys(map(canonical_label, words)))
    except ValueError as error:
        raise ValueError(f"bad device {text!r}: {error}") from None


def _devices(text: str) -> str:
    parse_devices(text)
    return text


DeviceList = Annotated[
    str, AfterValidator(_devices), Field(json_schema_extra={"pattern": r"[^+,;\s]"})
]
