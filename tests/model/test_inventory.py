"""The tables of an inventory: defaults, and what stands in for what is unwritten."""

from pathlib import Path
from typing import Any

import pytest
from pydantic.fields import FieldInfo

from rlxdeploy.model.inventory import ARRAYS_OF_TABLES, TABLES, Inventory, Job, Node
from rlxdeploy.model.vocabulary import Ready, Security, Wire

KEYS = [
    pytest.param(table, field, id=".".join((*table, name)))
    for table, model in TABLES.items()
    for name, field in model.model_fields.items()
]
KEY_NAMES = [(table, name) for table, model in TABLES.items() for name in model.model_fields]
COMPANIONS: dict[str, dict[str, Any]] = {
    "source": {"dest": "a"},
    "dest": {"source": "a"},
    "mode": {"source": "a", "dest": "a"},
    "template": {"source": "a", "dest": "a"},
}


def document(table: tuple[str, ...], content: dict[str, Any]) -> dict[str, Any]:
    """Return the whole document in which *table* holds *content*."""
    whole: Any = content
    for depth in range(len(table), 0, -1):
        array = table[:depth] in ARRAYS_OF_TABLES
        whole = {table[depth - 1]: [whole] if array else whole}
    return dict(whole)


@pytest.mark.parametrize(("table", "field"), KEYS)
def test_every_key_has_a_description(table: tuple[str, ...], field: FieldInfo) -> None:
    """The reference and the schema can say what each key means."""
    assert field.description is not None, table
    assert field.description[0].isupper() or field.description.startswith(("active", "false"))
    assert field.description.endswith(".")


@pytest.mark.parametrize(("table", "name"), KEY_NAMES, ids=map(str, KEY_NAMES))
def test_every_example_loads(table: tuple[str, ...], name: str) -> None:
    """Each key's examples are values that it may have."""
    examples = TABLES[table].model_fields[name].examples

    assert examples
    for example in examples:
        content = {**COMPANIONS.get(name, {}), name: example}
        Inventory.model_validate(document(table, content))


DEFAULTS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "top": ((), {"model": None, "seq": 8, "rng_seed": None, "reserve_ram_gb": 6.0, "node": ()}),
    "job": (
        ("job",),
        {
            "name": None,
            "topology": "mesh",
            "command": None,
            "workdir": None,
            "env": {},
            "heap_mb": 64,
            "files": (),
            "user": None,
            "launch": "auto",
            "ready": "auto",
            "restart": "on-failure",
            "boot": None,
            "expect": None,
            "min_nodes": None,
            "join_timeout": 120,
            "revert_after": None,
            "peer_timeout": 10,
            "wire": None,
            "security": None,
            "hardening": "gpu",
            "device_env": "all",
        },
    ),
    "ssh": (
        ("ssh",),
        {
            "user": None,
            "port": None,
            "config": None,
            "identity": None,
            "client": "auto",
            "forks": 32,
            "connect_timeout": 10,
            "host_keys": "strict",
            "become": "auto",
        },
    ),
    "network": (
        ("network",),
        {"interface": None, "cidr": None, "data_port": 29500, "master_port": 29400},
    ),
    "runtime": (("runtime",), {"python": "python3", "provision": "auto"}),
    "discover": (
        ("discover",),
        {
            "ssh_hosts": (),
            "subnet": None,
            "port": 9100,
            "ckpt_dir": None,
            "device": None,
            "precision": "bf16",
            "timeout_ms": 300,
            "mdns": False,
            "browse_s": 3,
            "advertise": False,
            "probe": True,
            "scan_ports": (22,),
            "exclude": (),
            "max_hosts": 4096,
        },
    ),
    "placement": (
        ("placement",),
        {"policy": "ram_balanced", "n_layers": None, "layer_bytes": None, "layer_flops": None},
    ),
    "objective": (
        ("placement", "objective"),
        {
            "optimize": "throughput",
            "context": 4096,
            "hop_secs": 0.002,
            "kv_bytes_per_layer_token": None,
            "on_unknown_kv": "fail",
            "kv_dtype": None,
            "precision_ladder": (),
        },
    ),
    "node": (
        ("node",),
        {
            "addr": None,
            "ssh": None,
            "ckpt_dir": None,
            "device": None,
            "precision": "bf16",
            "kv_cache": "none",
            "rng_seed": None,
            "max_ram_gb": None,
            "layers": None,
            "role": "active",
            "standby_for": None,
            "name": None,
            "rank": None,
            "slots": 1,
            "tags": (),
            "env": {},
            "python": None,
            "bind": None,
            "managed": True,
        },
    ),
}


@pytest.mark.parametrize(("table", "defaults"), DEFAULTS.values(), ids=DEFAULTS.keys())
def test_what_is_unwritten_has_its_documented_default(
    table: tuple[str, ...], defaults: dict[str, Any]
) -> None:
    """Every key is there, with the default that the manual gives."""
    empty = TABLES[table]()

    assert {name: getattr(empty, name) for name in defaults} == defaults
    nested = {"job", "ssh", "network", "runtime", "discover", "placement", "objective"}
    assert set(TABLES[table].model_fields) - set(defaults) <= nested


COMMAND = Job(command=("python3",))


def test_readiness_follows_what_runs() -> None:
    """The built-in node says so itself; a command is ready once it runs, unless written."""
    assert Job().effective_ready is Ready.NOTIFY
    assert COMMAND.effective_ready is Ready.EXEC
    assert Job(command=("python3",), ready=Ready.NOTIFY).effective_ready is Ready.NOTIFY


def test_starting_at_boot_follows_what_runs() -> None:
    """The built-in node starts at boot, a command does not, unless written."""
    assert Job().effective_boot
    assert not COMMAND.effective_boot
    assert Job(command=("python3",), boot=True).effective_boot


def test_reverting_waits_a_minute_longer_than_joining() -> None:
    """A host must not go back while the others may still join."""
    assert Job(join_timeout=30).effective_revert_after == 90
    assert Job(revert_after=500).effective_revert_after == 500


def test_the_wire_is_native_and_protected_where_unwritten() -> None:
    """The public wire knows no protection; the native one does without when that is written."""
    assert (Job().effective_wire, Job().effective_security) == (Wire.NATIVE, Security.PSK)
    assert Job(wire=Wire.RLX).effective_security is Security.NONE
    assert Job(security=Security.NONE).effective_wire is Wire.NATIVE


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/lab/train.toml", "train"),
        ("/lab/inventory.toml", "lab"),
        ("/lab/My Cluster_2.toml", "my-cluster-2"),
        (f"/lab/{'x' * 80}.toml", "x" * 63),
    ],
    ids=["the stem", "the folder", "made a slug", "cut"],
)
def test_a_job_is_named_after_its_file(path: str, name: str) -> None:
    """Without a written name the file's stem counts, or the folder's for inventory.toml."""
    assert Inventory().job_name(Path(path)) == name
    assert Inventory(job=Job(name="own")).job_name(Path(path)) == "own"


@pytest.mark.parametrize("path", ["/inventory.toml", "/lab/___.toml", "/lab/store.toml"])
def test_a_path_may_yield_no_name(path: str) -> None:
    """Nothing is invented, and `store` is the name of a folder beside the jobs."""
    with pytest.raises(ValueError, match="name"):
        Inventory().job_name(Path(path))


def test_a_nodes_seed_goes_over_the_global_one() -> None:
    """The node's, else the global, else 0; a seed of 0 is a seed."""
    assert Inventory(rng_seed=5).seed_of(Node(rng_seed=0)) == 0
    assert Inventory(rng_seed=5).seed_of(Node()) == 5
    assert Inventory().seed_of(Node()) == 0
