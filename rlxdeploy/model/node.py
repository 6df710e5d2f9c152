"""`[[node]]`: one machine that has ranks, or stands by for one that has."""

from pydantic import Field

from rlxdeploy.model.addresses import Address, BindAddress
from rlxdeploy.model.devices import DeviceList
from rlxdeploy.model.job import Environment
from rlxdeploy.model.names import LayerRange, Slug, SshHost, Text
from rlxdeploy.model.precision import PrecisionName
from rlxdeploy.model.vocabulary import KvCache, Role
from rlxdeploy.model.written import Amount, Flag, RankNumber, Slots, Unsigned64, Written


class Node(Written):
    """One machine that has ranks, or stands by for one that has."""

    addr: Address | None = Field(
        default=None,
        description="Address its peers dial, with or without a port: host, host:port, [v6]:port.",
        examples=["10.0.0.5:29500", "[fd00::5]:29500"],
    )
    ssh: SshHost | None = Field(
        default=None,
        description="SSH alias or user@host. Unwritten: the node runs on the controller.",
        examples=["gpu-a"],
    )
    ckpt_dir: Text | None = Field(
        default=None, description="Checkpoint folder on the node.", examples=["/models/demo"]
    )
    device: DeviceList | None = Field(
        default=None,
        description=(
            "Devices to run on, the primary first. Unwritten: the best one the node reports."
        ),
        examples=["cuda", "cuda+cpu"],
    )
    precision: PrecisionName = Field(
        default="bf16", description="Precision the weights are held in.", examples=["f16"]
    )
    kv_cache: KvCache = Field(
        default=KvCache.NONE, description="Where the key-value cache is.", examples=["device"]
    )
    rng_seed: Unsigned64 | None = Field(
        default=None, description="The node's own seed, over the global one.", examples=[7]
    )
    max_ram_gb: Amount | None = Field(
        default=None, description="Memory the node may use, in decimal GB.", examples=[40]
    )
    layers: LayerRange | None = Field(
        default=None,
        description="Layers of the node under policy manual, half open.",
        examples=["0:16"],
    )
    role: Role = Field(
        default=Role.ACTIVE,
        description="active has ranks; standby holds files only; draining gives its ranks up.",
        examples=["standby"],
    )
    standby_for: Address | None = Field(
        default=None,
        description="The addr of the active node that a standby stands by for.",
        examples=["10.0.0.5:29500"],
    )
    name: Slug | None = Field(
        default=None, description="What the node is called in plans.", examples=["alpha"]
    )
    rank: RankNumber | None = Field(
        default=None,
        description="Pins the node's first rank; its further slots take the ranks that follow.",
        examples=[0],
    )
    slots: Slots = Field(default=1, description="How many ranks the node has.", examples=[4])
    tags: tuple[Slug, ...] = Field(
        default=(), description="Words to select the node by.", examples=[["rack-a", "fast"]]
    )
    env: Environment = Field(
        default_factory=dict,
        description="Variables for the node's ranks, over the job's.",
        examples=[{"OMP_NUM_THREADS": "16"}],
    )
    python: Text | None = Field(
        default=None,
        description="The node's own interpreter, over [runtime] python.",
        examples=["/opt/venv/bin/python"],
    )
    bind: BindAddress | None = Field(
        default=None,
        description="Address the ranks listen on, where it is not the one peers dial.",
        examples=["192.168.56.11"],
    )
    managed: Flag = Field(
        default=True,
        description="false: the node runs elsewhere; it has a rank but is never touched.",
        examples=[False],
    )
