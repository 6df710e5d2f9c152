"""What a rank sees of its host's device nodes, from two listings of them."""

from collections.abc import Mapping

import pytest

from rlxdeploy.facts import views
from rlxdeploy.facts.question import Answer, Answers
from rlxdeploy.model.survey import RankSeen

HERE = """\
here|crw-rw-rw- 1 0 0 195,   0 Nov 30 19:51 dev/nvidia0
here|crw-rw-rw- 1 0 0 195, 255 Nov 30 19:51 dev/nvidiactl
here|crw-rw---- 1 0 44 226, 128 Nov 30 19:51 dev/dri/renderD128
"""
NODES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dri/renderD128")
WHOLE = HERE.replace("here|", "there|")

# A process's own listing, and which of the host's nodes it does not see.
SEEN = {
    "the host's own /dev": (WHOLE, ()),
    "another owner and time": (WHOLE.replace("0 0 195", "7 9 195").replace("19:51", "2025"), ()),
    "busybox's ls": (WHOLE.replace("- 1 0", "-    1 0       "), ()),
    "a /dev of its own": ("", NODES),
    "a node closed by InaccessiblePaths": (
        WHOLE.replace("crw-rw-rw- 1 0 0 195,   0", "c--------- 1 0 0   0,   0"),
        ("/dev/nvidia0",),
    ),
    "a plain file of that name": (
        WHOLE.replace("crw-rw-rw- 1 0 0 195,   0", "-rw-rw-rw- 1 0 0       12"),
        ("/dev/nvidia0",),
    ),
    "another card under its name": (WHOLE.replace("195,   0", "195,   1"), ("/dev/nvidia0",)),
}


@pytest.mark.parametrize(("listing", "lacking"), SEEN.values(), ids=SEEN.keys())
@pytest.mark.parametrize("name", [views.SYSTEM, views.USER])
def test_a_node_is_seen_if_it_is_the_same_device(
    name: str, listing: str, lacking: tuple[str, ...]
) -> None:
    """Type and numbers count, and nothing else that ls tells."""
    text = f"{HERE}process|7\n{listing}process|8\n{WHOLE}"
    read = views.parse(Answers({name: Answer(text)}))

    assert {pid: {*nodes} for pid, nodes in read.items()} == {7: {*NODES}, 8: {*NODES}}
    assert [node for node, there in read[7].items() if not there] == list(lacking)
    assert all(read[8].values())


ALL = dict.fromkeys(NODES, True)
CARD_GONE = {**ALL, "/dev/nvidia0": False}

# A rank's devices, the nodes as it sees them, what is hidden from it, and whether that is proven.
RULES: Mapping[str, tuple[str, Mapping[str, bool] | None, tuple[str, ...], bool]] = {
    "all there": ("cuda, cpu", ALL, (), True),
    "the card hidden": ("cuda, cpu", CARD_GONE, ("/dev/nvidia0",), False),
    "another vendor's hidden": ("rocm", CARD_GONE, (), True),
    "the second device's hidden": ("vulkan, cuda", CARD_GONE, ("/dev/nvidia0",), False),
    "a rank on the processor": ("cpu", CARD_GONE, (), True),
    "a processor, not looked at": ("cpu", None, (), True),
    "a card, not looked at": ("cuda", None, (), False),
    "a host without a node for it": ("cuda", {"/dev/dri/renderD128": True}, (), False),
    "a Mac, which has no nodes": ("metal, ane", None, (), True),
    "a disk is no card": ("cuda", {"/dev/nvidia0": True, "/dev/nvme0": False}, (), True),
}


@pytest.mark.parametrize(("labels", "nodes", "lacking", "proven"), RULES.values(), ids=RULES.keys())
def test_a_rank_is_blind_to_what_its_own_devices_need(
    labels: str, nodes: Mapping[str, bool] | None, lacking: tuple[str, ...], *, proven: bool
) -> None:
    """Only nodes of the rank's devices count; where none could be compared, nothing is proven."""
    seen = RankSeen(0, "active", ready=True, nodes=nodes)

    assert views.hidden(labels, seen) == lacking
    assert views.is_proven(labels, seen) == proven
    assert all(node in views.blindness(labels, seen) for node in lacking)
    assert bool(views.blindness(labels, seen)) == bool(lacking)
