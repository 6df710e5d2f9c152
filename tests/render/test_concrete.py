"""The group written down as an inventory resolves to the same group."""

from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.survey import Device, HostFacts
from rlxdeploy.render.concrete import resolve_toml
from rlxdeploy.render.render import render
from rlxdeploy.resolve.resolve import resolve
from tests.render.kit import inputs
from tests.resolve.lab import CONTROLLER, GIB, load, machine, survey, three

CARDS = [Device("cuda", "Card", 24 * GIB, ident=str(index)) for index in range(4)]
HEAD = '[job]\nname = "lab"\nwire = "rlx"\nsecurity = "none"\n'

GROUPS: dict[str, tuple[str, tuple[HostFacts, ...]]] = {
    "the local demo": ('[[node]]\ndevice = "cpu"\nslots = 4\n', (machine(),)),
    "several nodes on one machine": (
        '[[node]]\nslots = 2\nname = "one"\n[[node]]\nslots = 2\n',
        (machine("local", "", *CARDS),),
    ),
    "three hosts with all that is optional": (
        HEAD + '[job.env]\nTOKEN = { from = "env:TOKEN" }\n'
        '[[node]]\nssh = "a"\ntags = ["x"]\nmax_ram_gb = 40\n[[node]]\nssh = "b"\nrank = 0\n'
        '[[node]]\nssh = "c"\nrole = "standby"\n'
        '[[node]]\naddr = "10.0.0.9:4000"\nmanaged = false\n',
        three(),
    ),
    "a star": (
        HEAD + 'topology = "star"\n' + "".join(f'[[node]]\nssh = "{name}"\n' for name in "abc"),
        three(),
    ),
    "nodes that show themselves": (
        HEAD
        + "[discover]\nadvertise = true\n"
        + "".join(f'[[node]]\nssh = "{name}"\n' for name in "abc"),
        three(),
    ),
    "layers that were shared out": (
        HEAD
        + "[placement]\nn_layers = 7\n[placement.objective]\ncontext = 9\n"
        + "".join(f'[[node]]\nssh = "{name}"\n' for name in "abc"),
        three(),
    ),
    "a standby that names its principal": (
        HEAD + '[[node]]\nssh = "a"\naddr = "10.0.0.1"\n'
        '[[node]]\nssh = "b"\nrole = "standby"\nstandby_for = "10.0.0.1"\n',
        three(),
    ),
    "ranks of a node that do not follow one another": (
        HEAD + '[[node]]\nssh = "a"\nslots = 2\nname = "one"\n[[node]]\nssh = "b"\n',
        (machine("a", "10.0.0.1/24", ranks=[0, 2]), machine("b", "10.0.0.2/24", ranks=[1])),
    ),
}


def essence(group: Resolution) -> Resolution:
    """Return the group without the reasons, and with nodes known by their ranks alone."""
    seats = tuple(replace(seat, why={}, node="", index=0, slot=0) for seat in group.seats)
    hosts = {name: replace(placed, why={}) for name, placed in group.hosts.items()}
    return replace(group, seats=seats, hosts=hosts, notices=(), placement="")


@pytest.mark.parametrize(("text", "machines"), GROUPS.values(), ids=GROUPS.keys())
def test_the_concrete_inventory_resolves_to_the_same_group(
    text: str, machines: tuple[HostFacts, ...]
) -> None:
    """Every rank keeps its device, address, interpreter and variables."""
    loaded, seen = load(text), survey(*machines)
    group = resolve(loaded, seen, CONTROLLER)

    written = resolve_toml(group, loaded)

    assert essence(resolve(load(written), seen, CONTROLLER)) == essence(group)
    assert resolve_toml(resolve(load(written), seen, CONTROLLER), load(written)) == written


@pytest.mark.parametrize("name", ["the local demo", "a star", "layers that were shared out"])
def test_the_concrete_inventory_may_be_kept_in_another_file(name: str) -> None:
    """All that it renders is byte for byte what runs already, so nothing restarts."""
    text, machines = GROUPS[name]
    given, seen = inputs(text), survey(*machines)
    group = resolve(given.loaded, seen, CONTROLLER)
    kept = load(resolve_toml(group, given.loaded))
    kept = replace(kept, path=PurePosixPath("/lab/kept.toml"), shown="kept.toml")

    again = render(resolve(kept, seen, CONTROLLER), replace(given, loaded=kept), 1)

    assert again.hosts == render(group, given, 1).hosts


def test_the_concrete_inventory_is_one_to_read() -> None:
    """What was found stands beside what was written, under the node it belongs to."""
    loaded = load(
        HEAD + '[discover]\nport = 9100\n[[node]]\nssh = "a"\n[[node]]\nssh = "b"\nenv.A = "1"\n'
    )
    group = resolve(loaded, survey(*three()[:2]), CONTROLLER)

    assert resolve_toml(group, loaded) == (
        "# Job lab, resolved by rlxdeploy from inventory.toml.\n\n"
        '[job]\nname = "lab"\nwire = "rlx"\nsecurity = "none"\n\n'
        '[[node]]\naddr = "10.0.0.1:29500"\nssh = "a"\ndevice = "cpu"\nrank = 0\n'
        'python = "/usr/bin/python3"\n\n'
        '[[node]]\naddr = "10.0.0.2:29500"\nssh = "b"\ndevice = "cpu"\nrank = 1\n'
        'python = "/usr/bin/python3"\n\n[node.env]\nA = "1"\n'
    )
