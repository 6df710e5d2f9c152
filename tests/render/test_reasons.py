"""Every variable of every rank has a reason, and none has one that no rank could have."""

import pytest

from rlxdeploy.model.inventory import Inventory
from rlxdeploy.model.survey import Device, HostFacts
from rlxdeploy.render.reasons import Variable, rank_variables, reasons
from rlxdeploy.resolve.promote import Promotion
from rlxdeploy.resolve.resolve import resolve
from rlxdeploy.runtime.envfile import parse_env
from tests.render.kit import contents, inputs, rendered
from tests.resolve.lab import CONTROLLER, GIB, load, machine, survey

CARDS = (Device("cuda", "Card", GIB, ident="0"), Device("cuda", "Card", GIB, ident="1"))
EVERYTHING = """\
rng_seed = 7
[job]
wire = "rlx"
security = "none"
env = { NOTE = "all", COMMON = "job" }
[placement]
policy = "manual"
[[node]]
ssh = "a"
slots = 2
ckpt_dir = "/m"
max_ram_gb = 4
bind = "0.0.0.0"
layers = "0:4"
env = { NOTE = "own" }
[[node]]
ssh = "b"
rank = 2
layers = "4:8"
"""
INVENTORIES = {
    "one local rank": ("[[node]]\n", (machine(),)),
    "everything": (
        EVERYTHING,
        (machine("a", "10.0.0.1/24", *CARDS), machine("b", "10.0.0.2/24")),
    ),
    "a star": (
        EVERYTHING.replace("[job]", '[job]\ntopology = "star"'),
        (machine("a", "10.0.0.1/24", *CARDS), machine("b", "10.0.0.2/24")),
    ),
}


def variables(text: str, machines: tuple[HostFacts, ...], rank: int) -> tuple[Variable, ...]:
    given = inputs(text)
    group = resolve(given.loaded, survey(*machines), CONTROLLER)
    return rank_variables(group.seats[rank], group, given, 1)


@pytest.mark.parametrize(("text", "machines"), INVENTORIES.values(), ids=INVENTORIES.keys())
def test_what_is_explained_is_what_the_rank_gets(
    text: str, machines: tuple[HostFacts, ...]
) -> None:
    """The names and values are those of the environment file, in its order, each with a reason."""
    files = rendered(text, *machines)
    for host in files.hosts:
        for path, content in contents(files, host).items():
            if path.startswith("env/"):
                rank = int(path.removeprefix("env/").removesuffix(".env"))
                found = variables(text, machines, rank)

                assert [(one.name, one.value) for one in found] == [*parse_env(content).items()]
                assert all(one.why for one in found)


def test_the_reasons_name_the_lines() -> None:
    """A node's value goes before the job's, and a default is called one."""
    _, machines = INVENTORIES["everything"]
    first = {one.name: one.why for one in variables(EVERYTHING, machines, 0)}
    last = {one.name: one.why for one in variables(EVERYTHING, machines, 2)}

    assert first["NOTE"] == "inventory.toml:15:9: node[0].env.NOTE"
    assert first["COMMON"] == "inventory.toml:5:23: job.env.COMMON"
    assert first["RNG_SEED"] == "inventory.toml:1:1: rng_seed"
    assert first["LAYERS"] == "inventory.toml:14:1: node[0].layers"
    assert first["HEAP_MB"] == "the default of job.heap_mb"
    assert first["DEVICE"].startswith("the best reported: cuda 'Card'")
    assert last["RANK"] == "pinned: inventory.toml:18:1: node[1].rank"


def test_a_secret_is_not_shown() -> None:
    """Its line is, and where it comes from is written there."""
    text = '[job]\nenv.TOKEN = { from = "env:TOKEN" }\n[[node]]\n'
    (found,) = [one for one in variables(text, (machine(),), 0) if one.name == "TOKEN"]

    assert found == Variable("TOKEN", "(secret)", "inventory.toml:2:5: job.env.TOKEN")


def test_a_promoted_standby_explains_its_layers() -> None:
    """They are those of the node that it takes over from, whose line is not its own."""
    text = (
        '[placement]\npolicy = "manual"\n[[node]]\naddr = "127.0.0.1:4000"\nlayers = "0:4"\n'
        '[[node]]\nrole = "standby"\nstandby_for = "127.0.0.1:4000"\nname = "spare"\n'
    )
    loaded = load(text)
    group = resolve(loaded, survey(machine()), CONTROLLER, Promotion(("spare",)))

    assert group.seats[0].share.layers == "0:4"
    assert "takes over from" in reasons(group.seats[0], group, loaded, 1)["LAYERS"]


def test_no_default_is_explained_by_a_key_that_there_is_not() -> None:
    """Each `the default of …` names a key of the inventory."""
    loaded = load("[[node]]\n")
    group = resolve(loaded, survey(machine()), CONTROLLER)
    for why in reasons(group.seats[0], group, loaded, 1).values():
        if why.startswith("the default of "):
            value: object = Inventory(node=loaded.inventory.node)
            for step in why.removeprefix("the default of ").split(" ")[0].rstrip(",").split("."):
                name, _, index = step.partition("[")
                value = getattr(value, name)
                value = value[0] if index and isinstance(value, tuple) else value
