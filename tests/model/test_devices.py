"""Device labels and lists of them."""

import pytest

from rlxdeploy.model.devices import canonical_label, parse_devices

ALIASES = {
    "metal": ["mtl"],
    "ane": ["coreml", "neural-engine"],
    "cuda": ["nvidia"],
    "rocm": ["hip", "amd"],
    "oneapi": ["levelzero", "level-zero", "l0", "intel", "sycl"],
    "xdna": ["aie", "aie2", "ryzenai", "ryzen-ai", "amdnpu"],
    "gpu": ["wgpu"],
    "vulkan": ["vk"],
    "opengl": ["gl"],
    "directx": ["dx12", "d3d12"],
    "hexagon": ["htp", "qnn"],
    "egpu": ["tbgpu", "thunderbolt"],
    "cpu": [],
    "mlx": [],
    "webgpu": [],
    "tpu": [],
}


@pytest.mark.parametrize(("label", "aliases"), ALIASES.items(), ids=ALIASES.keys())
def test_a_label_is_known_by_its_aliases(label: str, aliases: list[str]) -> None:
    """Every name, in any case, leads to the canonical label."""
    for word in (label, *aliases):
        assert canonical_label(word) == label
        assert canonical_label(word.upper()) == label


LISTS = {
    "cuda": ("cuda",),
    "cuda+cpu": ("cuda", "cpu"),
    " NVIDIA , cpu;vk hip ": ("cuda", "cpu", "vulkan", "rocm"),
    "cuda+nvidia": ("cuda",),
    "cpu++cuda": ("cpu", "cuda"),
}


@pytest.mark.parametrize(("text", "labels"), LISTS.items(), ids=LISTS.keys())
def test_a_list_keeps_its_order_and_drops_what_is_said_twice(
    text: str, labels: tuple[str, ...]
) -> None:
    """Separators mix, aliases fold, and the first is the primary."""
    assert parse_devices(text) == labels


@pytest.mark.parametrize("text", ["", " ", "+", "cuda+warp", "mps"])
def test_a_bad_list_is_refused_with_its_text(text: str) -> None:
    """An empty list and an unknown label are bad devices."""
    with pytest.raises(ValueError, match="bad device") as caught:
        parse_devices(text)

    assert repr(text) in str(caught.value)


def test_an_unknown_label_is_named_with_the_nearest() -> None:
    """A typing error is shown with what was probably meant."""
    with pytest.raises(ValueError, match="unknown device 'vulcan'; did you mean 'vulkan'"):
        canonical_label("vulcan")
