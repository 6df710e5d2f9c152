"""Why each variable of a rank has its value: the line, the choice or the rule that gave it.

The names are those of `variables`, section by section; a test holds the two together.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rlxdeploy.model.job import Secret
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.locate import KeyPath
from rlxdeploy.model.resolution import Resolution, Seat
from rlxdeploy.render.environment import HIDDEN, own_key
from rlxdeploy.render.inputs import Inputs
from rlxdeploy.render.render import Renderer


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of a rank, with the *value* as people may see it."""

    name: str
    value: str
    why: str


def rank_variables(
    seat: Seat, resolution: Resolution, inputs: Inputs, generation: int
) -> tuple[Variable, ...]:
    """Return what the environment file of a managed rank sets, in its order."""
    renderer = Renderer(resolution, inputs, generation)
    sections = renderer.sections(resolution.hosts[seat.host], seat)
    values = {name: value for one in sections for name, value in one.variables.items()}
    values |= {
        name: HIDDEN if isinstance(value, Secret) else value for name, value in seat.env.items()
    }
    why = reasons(seat, resolution, inputs.loaded, generation)
    return tuple(Variable(name, value, why[name]) for name, value in values.items())


def reasons(
    seat: Seat, resolution: Resolution, loaded: Loaded, generation: int
) -> Mapping[str, str]:
    """Return the reason for every variable that the rank may have."""
    placed = resolution.hosts[seat.host]
    return {
        **_group(seat, resolution, loaded),
        **_share(seat, loaded),
        **_torchrun(loaded),
        **_runtime(seat, placed.launch, loaded, generation),
        **{name: loaded.origin(own_key(name, seat, loaded)) for name in seat.env},
    }


def _group(seat: Seat, resolution: Resolution, loaded: Loaded) -> dict[str, str]:
    star = "rank 0 alone, the others of a star dial it"
    mesh = "the address and port of every rank, in order"
    return {
        "RANK": seat.why["rank"],
        "WORLD": "one for each slot of an active node",
        "PEERS": star if len(resolution.peers) < resolution.world else mesh,
        "TOPOLOGY": loaded.origin(("job", "topology")),
        "HEAP_MB": loaded.origin(("job", "heap_mb")),
    }


def _share(seat: Seat, loaded: Loaded) -> dict[str, str]:
    visible = f"{loaded.origin(('job', 'device_env'))}, and the devices of {seat.host}"
    own = {
        "CKPT_DIR": "ckpt_dir",
        "PRECISION": "precision",
        "KV_CACHE": "kv_cache",
        "MAX_RAM_GB": "max_ram_gb",
    }
    return {
        "DEVICE": seat.why["device"],
        **dict.fromkeys(("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"), visible),
        "ZE_AFFINITY_MASK": visible,
        "CUDA_DEVICE_ORDER": "a rule: the survey counts cards by bus, CUDA by itself by speed",
        **{name: loaded.origin(("node", seat.index, key)) for name, key in own.items()},
        "RNG_SEED": loaded.origin(_first(loaded, ("node", seat.index, "rng_seed"), ("rng_seed",))),
        "LAYERS": _layers(seat, loaded),
        "ROLE": f"{seat.node} is active: it has a rank",
    }


def _layers(seat: Seat, loaded: Loaded) -> str:
    if why := seat.why.get("layers"):
        return why
    key = ("node", seat.index, "layers")
    if loaded.written(key):
        return loaded.origin(key)
    return "a promoted standby has the layers of the node that it takes over from"


def _torchrun(loaded: Loaded) -> dict[str, str]:
    return {
        "MASTER_ADDR": "the address of rank 0",
        "MASTER_PORT": loaded.origin(("network", "master_port")),
        "WORLD_SIZE": "WORLD",
        "LOCAL_RANK": "the place of the rank among those of its machine, in order",
        "LOCAL_WORLD_SIZE": "how many ranks its machine has",
        "NODE_RANK": "the place of its machine, in the order of their lowest ranks",
    }


def _runtime(seat: Seat, launch: str, loaded: Loaded, generation: int) -> dict[str, str]:
    name = ("job", "name")
    return {
        "RLX_JOB": loaded.origin(name) if loaded.written(name) else f"the name of {loaded.path}",
        "RLX_PLAN": "a digest of job, WORLD, PEERS, TOPOLOGY, wire, runtime and"
        f" generation {generation}",
        "RLX_WIRE": loaded.origin(("job", "wire")),
        "RLX_SECURITY": loaded.origin(("job", "security")),
        "RLX_KEY_FILE": f"where {launch} keeps the job's key, which apply makes",
        "RLX_BIND": seat.why.get("bind", ""),
        "RLX_STATE_FILE": f"where {launch} keeps what is gone after a reboot",
        "RLX_JOIN_TIMEOUT": loaded.origin(("job", "join_timeout")),
        "RLX_PEER_TIMEOUT": loaded.origin(("job", "peer_timeout")),
        "RLX_ADVERTISE": loaded.origin(("discover", "advertise")),
        "PYTHONPATH": "the runtime of this rlxdeploy, in the host's store",
    }


def _first(loaded: Loaded, *keys: KeyPath) -> KeyPath:
    """Return the first key that is written, or else the last."""
    return next((key for key in keys if loaded.written(key)), keys[-1])
