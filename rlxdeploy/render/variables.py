"""The variables that one rank starts with, in the order in which its file shows them."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rlxdeploy.model.host import Tree
from rlxdeploy.model.job import EnvValue, Job, Secret
from rlxdeploy.model.resolution import Resolution, Seat
from rlxdeploy.model.vocabulary import Security, Wire

# What a vendor's driver calls the list of devices a process may see.
_VISIBLE = {
    "cuda": "CUDA_VISIBLE_DEVICES",
    "rocm": "HIP_VISIBLE_DEVICES",
    "oneapi": "ZE_AFFINITY_MASK",
}


@dataclass(frozen=True, slots=True)
class Section:
    """Variables that belong together, under the line that says what they are."""

    title: str
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Around:
    """What the ranks of one host have in common.

    *archive* is the runtime's path there; *peers* is PEERS, which is long and the same for all;
    *advertise*: the nodes show themselves by mDNS.
    """

    resolution: Resolution
    peers: str
    job: Job
    tree: Tree
    plan: str
    archive: str
    advertise: bool = False


def plan_hash(resolution: Resolution, runtime: str, generation: int) -> str:
    """Return RLX_PLAN: equal on two ranks exactly if they were told to form the same group.

    *runtime* is the archive's digest.  One rank's own environment does not go in.
    """
    group = {
        "job": resolution.job,
        "world": resolution.world,
        "peers": resolution.peers,
        "topology": resolution.topology,
        "wire": resolution.wire,
        "runtime": runtime,
        "generation": generation,
    }
    return hashlib.sha256(json.dumps(group, sort_keys=True).encode()).hexdigest()


def rank_sections(seat: Seat, around: Around) -> tuple[Section, ...]:
    """Return all that rlxdeploy itself sets for *seat*."""
    return (
        Section("The group.", _group(seat, around)),
        Section("This rank's devices and its share of the model.", _share(seat)),
        Section("The same group, in torchrun's words.", _torchrun(seat, around.resolution)),
        Section("The runtime.", _runtime(seat, around)),
    )


def own_variables(env: Mapping[str, EnvValue], said: Callable[[Secret], str]) -> dict[str, str]:
    """Return what the person set, with what *said* makes of each secret in its place."""
    return {
        name: said(value) if isinstance(value, Secret) else value for name, value in env.items()
    }


def _group(seat: Seat, around: Around) -> dict[str, str]:
    resolution = around.resolution
    return {
        "RANK": str(seat.rank),
        "WORLD": str(resolution.world),
        "PEERS": around.peers,
        "TOPOLOGY": resolution.topology,
        "HEAP_MB": str(around.job.heap_mb),
    }


def _share(seat: Seat) -> dict[str, str]:
    share = seat.share
    values = {
        "DEVICE": "+".join(seat.devices),
        **_visible(seat),
        "CKPT_DIR": share.ckpt_dir,
        "PRECISION": share.precision,
        "KV_CACHE": share.kv_cache,
        "RNG_SEED": str(share.rng_seed),
        "LAYERS": share.layers,
        "MAX_RAM_GB": None if share.max_ram_gb is None else number(share.max_ram_gb),
        "ROLE": share.role,
    }
    return {name: value for name, value in values.items() if value is not None}


def _visible(seat: Seat) -> dict[str, str]:
    name = _VISIBLE.get(seat.devices[0])
    if name is None or seat.visible is None:
        return {}
    # The survey counts cards as nvidia-smi does, by bus; CUDA by itself counts by speed.
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if name == "CUDA_VISIBLE_DEVICES" else {}
    return {name: seat.visible} | order


def _torchrun(seat: Seat, resolution: Resolution) -> dict[str, str]:
    return {
        "MASTER_ADDR": resolution.master.address,
        "MASTER_PORT": str(resolution.master.port),
        "WORLD_SIZE": str(resolution.world),
        "LOCAL_RANK": str(seat.local_rank),
        "LOCAL_WORLD_SIZE": str(seat.local_world),
        "NODE_RANK": str(seat.node_rank),
    }


def _runtime(seat: Seat, around: Around) -> dict[str, str]:
    resolution, job, tree = around.resolution, around.job, around.tree
    # Unwritten, the runtime itself keeps an unprotected wire on loopback: leave it so.
    said = job.security is not None or resolution.wire != Wire.RLX
    values = {
        "RLX_JOB": resolution.job,
        "RLX_PLAN": around.plan,
        "RLX_WIRE": resolution.wire,
        "RLX_SECURITY": resolution.security if said else None,
        "RLX_KEY_FILE": tree.key if resolution.security == Security.PSK else None,
        "RLX_BIND": seat.bind,
        "RLX_STATE_FILE": tree.state_file(seat.rank),
        "RLX_JOIN_TIMEOUT": number(job.join_timeout),
        "RLX_PEER_TIMEOUT": number(job.peer_timeout),
        "RLX_ADVERTISE": "1" if around.advertise else None,
        "PYTHONPATH": around.archive,
    }
    return {name: value for name, value in values.items() if value is not None}


def number(value: float) -> str:
    """Return *value* as a person writes it: 120, not 120.0."""
    return str(int(value)) if value == int(value) else repr(value)
