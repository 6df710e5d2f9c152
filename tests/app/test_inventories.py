"""Each inventory that we show for machines of a person's own, compiled from a recorded survey.

The surveys were recorded on the fleet, with addresses as the inventories write them; the cards of
the public cluster file were put in by hand.
"""

from pathlib import Path

import pytest

from rlxdeploy.app.compile import Compiled, Request, compile_job
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import nobody

SHOWN = Path(__file__).parents[2] / "inventories"
SURVEYS = Path(__file__).with_name("surveys")

# The nodes in rank order, and where they are dialled.
GROUPS = {
    "ssh-hosts": (("gpu-a", "gpu-b"), ("10.0.5.11:29500", "10.0.5.12:29500")),
    "subnet": (("10.0.5.11", "10.0.5.12"), ("10.0.5.11:29500", "10.0.5.12:29500")),
    "mdns": (("10.0.5.11", "10.0.5.12"), ("10.0.5.11:29500", "10.0.5.12:29500")),
    "mixed": (
        ("front", "front", "gpu-b", "10.0.5.13"),
        ("10.0.5.11:29500", "10.0.5.11:29501", "10.0.5.12:29500", "10.0.5.13:29500"),
    ),
    "nat": (("coordinator", "home-1", "home-2"), ("10.0.5.11:29500",)),
    "cluster": (
        ("local", "gpu-a", "gpu-c", "gpu-d"),
        ("10.0.0.10:9100", "10.0.0.11:9101", "10.0.0.14:9100", "10.0.0.15:9100"),
    ),
}


def compiled(name: str) -> Compiled:
    request = Request(SHOWN / f"{name}.toml", survey=SURVEYS / f"{name}.json")
    with Lab() as lab:
        return compile_job(request, lab, nobody)


@pytest.mark.parametrize("name", GROUPS)
def test_what_we_show_compiles_with_no_host_up(name: str) -> None:
    """Who is which rank, and at which address, is what the comment in the file says."""
    found = compiled(name)

    nodes, peers = GROUPS[name]
    assert tuple(seat.node for seat in found.resolution.seats) == nodes
    assert found.resolution.peers == peers
    assert {host for host, files in found.files(1).hosts.items() if files.released}


def test_a_machine_that_is_found_again_is_dropped_and_reported() -> None:
    """The written node of the mixture answers on the subnet, and by mDNS, too."""
    found = compiled("mixed")

    told = "\n".join(map(str, (*found.loaded.notices, *found.resolution.notices)))
    assert "10.0.5.11 is gpu-a under another name" in told
    assert "10.0.5.12 is gpu-b under another name" in told
    assert "found again: it is found by subnet already" in told


def test_the_public_file_shares_no_layers_out_without_their_number() -> None:
    """And its standby and its draining node have no rank."""
    found = compiled("cluster").resolution

    assert {seat.share.layers for seat in found.seats} == {None}
    assert {seat.share.ckpt_dir for seat in found.seats} == {"/models/demo"}
    assert [seat.devices for seat in found.seats] == [
        *(("metal", "cpu"), ("cuda", "cpu"), ("cuda",), ("cuda",)),
    ]
