"""The whole inventory: what a person wrote, checked once, never changed.

Attribute names equal the TOML keys.  Durations are seconds, sizes as the key's name says.  What is
unwritten and has no fixed default is None; a property or method gives the value that counts.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

from pydantic import Field

from rlxdeploy.model.job import Environment, EnvValue, Job, JobFile, Secret
from rlxdeploy.model.names import Text, slugified
from rlxdeploy.model.node import Node
from rlxdeploy.model.placement import Objective, Placement
from rlxdeploy.model.tables import Discover, Network, Runtime, Ssh
from rlxdeploy.model.written import Amount, Count, Unsigned64, Written

__all__ = (
    "ARRAYS_OF_TABLES",
    "TABLES",
    "Discover",
    "EnvValue",
    "Environment",
    "Inventory",
    "Job",
    "JobFile",
    "Network",
    "Node",
    "Objective",
    "Placement",
    "Runtime",
    "Secret",
    "Ssh",
)


class Inventory(Written):
    """One job and the machines it runs on."""

    model: Text | None = Field(
        default=None,
        description="The model's id or path; read by RLX tools, not by rlxdeploy.",
        examples=["org/model-gguf"],
    )
    seq: Count = Field(
        default=8,
        description="Sequence length; read by RLX tools, not by rlxdeploy.",
        examples=[8],
    )
    rng_seed: Unsigned64 | None = Field(
        default=None, description="Seed of every node without its own.", examples=[42]
    )
    reserve_ram_gb: Amount = Field(
        default=6.0,
        description="Memory left free on every node by a placement, in decimal GB.",
        examples=[2.0],
    )
    job: Job = Field(default_factory=Job, description="What every rank runs.", examples=[{}])
    ssh: Ssh = Field(default_factory=Ssh, description="How hosts are reached.", examples=[{}])
    network: Network = Field(
        default_factory=Network,
        description="Addresses and ports of the ranks.",
        examples=[{"cidr": "192.168.56.0/24"}],
    )
    runtime: Runtime = Field(
        default_factory=Runtime,
        description="The Python that runs the bundled runtime.",
        examples=[{"python": "/opt/venv/bin/python"}],
    )
    discover: Discover = Field(
        default_factory=Discover,
        description="Where to look for nodes that are not written down.",
        examples=[{"ssh_hosts": ["gpu-a", "gpu-b"]}],
    )
    placement: Placement = Field(
        default_factory=Placement,
        description="How layers are shared out among nodes.",
        examples=[{"policy": "manual"}],
    )
    node: tuple[Node, ...] = Field(
        default=(),
        description="The machines, in rank order.",
        examples=[[{"addr": "10.0.0.5:29500", "ssh": "gpu-a"}]],
    )

    def job_name(self, path: PurePath) -> str:
        """Return the job's name; *path* is the inventory's own, made absolute.

        Raises ValueError if none is written and neither file nor folder name yields one.
        """
        if self.job.name is not None:
            return self.job.name
        stem = path.parent.name if path.stem == "inventory" else path.stem
        return slugified(stem)

    def seed_of(self, node: Node) -> int:
        """Return the node's seed, else the global one, else 0."""
        own = node.rng_seed if node.rng_seed is not None else self.rng_seed
        return own or 0


# Every table that a file may hold, by its header; a value of `env` may be a Secret besides.
TABLES: Final[Mapping[tuple[str, ...], type[Written]]] = {
    (): Inventory,
    ("job",): Job,
    ("job", "files"): JobFile,
    ("ssh",): Ssh,
    ("network",): Network,
    ("runtime",): Runtime,
    ("discover",): Discover,
    ("placement",): Placement,
    ("placement", "objective"): Objective,
    ("node",): Node,
}
ARRAYS_OF_TABLES: Final = (("job", "files"), ("node",))
