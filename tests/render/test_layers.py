"""Layers that were shared out, as the ranks find them in their environment."""

import re
from dataclasses import replace
from math import inf

import pytest

from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.survey import HostFacts
from rlxdeploy.render.render import render
from rlxdeploy.resolve.promote import Promotion
from rlxdeploy.resolve.resolve import resolve
from tests.render.kit import contents, inputs
from tests.resolve.lab import CONTROLLER, HOSTS, deployed, machine, survey

GB = 10**9
STANDBY = '[[node]]\nssh = "d"\nrole = "standby"\nstandby_for = "10.0.0.2"\n'
MIRRORED = HOSTS.replace('ssh = "b"', 'ssh = "b"\naddr = "10.0.0.2"') + STANDBY


def host(name: str, gigabytes: float, gflops: float) -> HostFacts:
    """Return the machine *name* of a to d with so much memory available (decimal GB)."""
    facts = machine(name, f"10.0.0.{'abcd'.index(name) + 1}/24")
    memory = int(gigabytes * GB)
    hardware = replace(facts.hardware, ram_avail=memory, ram_total=memory, gflops=gflops)
    return replace(facts, hardware=hardware)


LAYERS = re.compile(r'^LAYERS="?([^"\n]*)', re.MULTILINE)

# 14, 8 and 4 GB after the reserve; 100, 100 and 200 GFLOP/s.
HOSTS_UP = (host("a", 20, 100), host("b", 14, 100), host("c", 10, 200))


def shared(text: str, *machines: HostFacts, promote: str = "") -> tuple[Resolution, dict[str, str]]:
    """Return the group, and what LAYERS is in the environment file of each rank, by host."""
    given = inputs(text)
    promotion = Promotion((promote,) if promote else ())
    group = resolve(
        given.loaded, survey(*machines), CONTROLLER, promotion, max_silent=inf if promote else 0
    )
    files = render(group, given, 1)
    texts = {name: "\n".join(contents(files, name).values()) for name in files.hosts}
    found = {name: LAYERS.findall(text) for name, text in texts.items()}
    return group, {name: one[0] for name, one in found.items() if one}


@pytest.mark.parametrize(
    ("policy", "layers"),
    [
        # 6.46, 3.69 and 1.85 of twelve layers; 3, 3 and 6 by speed.
        ("ram_balanced", {"a": "0:6", "b": "6:10", "c": "10:12"}),
        ("throughput", {"a": "0:3", "b": "3:6", "c": "6:12"}),
    ],
)
def test_each_rank_finds_its_half_open_range(policy: str, layers: dict[str, str]) -> None:
    """By memory or by speed, one after the other, none left over."""
    text = f'[placement]\nn_layers = 12\npolicy = "{policy}"\n{HOSTS}'

    assert shared(text, *HOSTS_UP)[1] == layers


def test_without_a_number_of_layers_nobody_finds_any() -> None:
    """And a layer that is written by hand is found as written."""
    assert shared(f'[placement]\npolicy = "throughput"\n{HOSTS}', *HOSTS_UP)[1] == {}

    nodes = HOSTS
    for name, written in (("a", "0:5"), ("b", "5:6"), ("c", " 6 : 12 ")):
        nodes = nodes.replace(f'ssh = "{name}"', f'ssh = "{name}"\nlayers = "{written}"')
    manual = shared(f'[placement]\npolicy = "manual"\n{nodes}', *HOSTS_UP)[1]
    assert manual == {"a": "0:5", "b": "5:6", "c": "6:12"}


def test_a_standby_that_takes_over_finds_its_principal_s_range() -> None:
    """Whatever memory it has itself; the others keep theirs."""
    text = f"[placement]\nn_layers = 12\n{MIRRORED}"
    group, before = shared(text, *HOSTS_UP, host("d", 90, 100))
    mark = replace(deployed(0), placement=group.placement)
    first = HOSTS_UP[0]
    kept = replace(first, job=replace(first.job, deployed=mark))

    after = shared(text, kept, HOSTS_UP[2], host("d", 90, 100), promote="d")[1]

    assert before == {"a": "0:6", "b": "6:10", "c": "10:12"}
    assert after == {"a": "0:6", "d": "6:10", "c": "10:12"}
