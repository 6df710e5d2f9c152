"""`[job]`: what every rank runs, and how it is started, watched and secured."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Discriminator, Field, Tag

from rlxdeploy.model.names import (
    AbsolutePath,
    Content,
    EnvName,
    FileMode,
    JobName,
    RelativePath,
    SecretSource,
    Text,
    UserName,
)
from rlxdeploy.model.vocabulary import (
    DeviceEnv,
    Hardening,
    Launch,
    Ready,
    Restart,
    Security,
    Topology,
    Wire,
)
from rlxdeploy.model.written import Count, Flag, HeapMegabytes, Seconds, Written


class Secret(Written):
    """A value fetched on the controller when the plan is made, and never printed."""

    source: SecretSource = Field(
        alias="from",
        description='Where the value is: "env:NAME" or "file:PATH", both on the controller.',
        examples=["env:HF_TOKEN", "file:secrets/token"],
    )


def _kind_of_value(value: object) -> str:
    return "<secret>" if isinstance(value, dict | Secret) else "<text>"


EnvValue = Annotated[
    Annotated[Content, Tag("<text>")] | Annotated[Secret, Tag("<secret>")],
    Discriminator(_kind_of_value),
]
Environment = Mapping[EnvName, EnvValue]


class JobFile(Written):
    """`[[job.files]]`: one file that every rank's host receives."""

    source: Text = Field(
        description="The file on the controller, relative to the inventory's folder.",
        examples=["train.py"],
    )
    dest: RelativePath = Field(
        description="Where it goes, relative to the job's working directory.",
        examples=["train.py"],
    )
    mode: FileMode = Field(
        default="0644",
        description="Its permissions, as an octal string.",
        examples=["0640"],
    )
    template: Flag = Field(
        default=False,
        description="Whether the file is a template filled in for each rank's host.",
        examples=[True],
    )


class Job(Written):
    """What every rank runs, and how it is started, watched and secured."""

    name: JobName | None = Field(
        default=None,
        description=(
            "Names units and folders on the hosts. Unwritten: the inventory file's stem, or its"
            " folder's name for a file called inventory.toml."
        ),
        examples=["train"],
    )
    topology: Topology = Field(
        default=Topology.MESH,
        description="Who is connected to whom: every pair, or every rank to rank 0.",
        examples=["star"],
    )
    command: tuple[Content, ...] | None = Field(
        default=None,
        min_length=1,
        description="What a rank runs, as a list taken literally. Unwritten: the built-in node.",
        examples=[["python3", "train.py", "--epochs", "3"]],
    )
    workdir: AbsolutePath | None = Field(
        default=None,
        description="The working directory on the host. Unwritten: the release's folder.",
        examples=["/srv/train"],
    )
    env: Environment = Field(
        default_factory=dict,
        description=(
            "Variables for every rank; none that rlxdeploy sets itself. A value may be"
            ' { from = "env:NAME" } or { from = "file:PATH" }: a secret.'
        ),
        examples=[{"OMP_NUM_THREADS": "8", "HF_TOKEN": {"from": "env:HF_TOKEN"}}],
    )
    heap_mb: HeapMegabytes = Field(
        default=64,
        description="Size of each rank's one-sided heap, in MiB.",
        examples=[256],
    )
    files: tuple[JobFile, ...] = Field(
        default=(),
        description="Files that every rank's host receives.",
        examples=[[{"source": "train.py", "dest": "train.py"}]],
    )
    user: UserName | None = Field(
        default=None,
        description="The account the ranks run as. Unwritten: the SSH login user.",
        examples=["ml"],
    )
    launch: Launch = Field(
        default=Launch.AUTO,
        description="What starts a rank; auto takes the first that works on the host.",
        examples=["process"],
    )
    ready: Ready = Field(
        default=Ready.AUTO,
        description=(
            "When a rank counts as started. auto: notify for the built-in node, exec for a"
            " command; write notify for a command that calls Node.connect()."
        ),
        examples=["notify"],
    )
    restart: Restart = Field(
        default=Restart.ON_FAILURE,
        description="What happens to a rank that ends.",
        examples=["always"],
    )
    boot: Flag | None = Field(
        default=None,
        description=(
            "Whether the ranks start at boot. Unwritten: true for the built-in node, false for a"
            " command."
        ),
        examples=[True],
    )
    expect: Count | None = Field(
        default=None,
        description="How many active nodes there must be after merging.",
        examples=[8],
    )
    min_nodes: Count | None = Field(
        default=None,
        description="How many active nodes suffice when written hosts cannot be reached.",
        examples=[6],
    )
    join_timeout: Seconds = Field(
        default=120.0,
        description="Seconds within which all ranks must have joined.",
        examples=[300],
    )
    revert_after: Seconds | None = Field(
        default=None,
        description=(
            "Seconds after which a host goes back to the previous release by itself."
            " Unwritten: join_timeout + 60."
        ),
        examples=[360],
    )
    peer_timeout: Seconds = Field(
        default=10.0,
        description="Seconds of silence after which a peer counts as lost.",
        examples=[30],
    )
    wire: Wire | None = Field(
        default=None,
        description=(
            "The protocol between ranks: native, or rlx beside ranks of the public RLX."
            " Unwritten: native."
        ),
        examples=["rlx"],
    )
    security: Security | None = Field(
        default=None,
        description=(
            "How ranks prove that they belong together: psk, by a key that apply makes, or not at"
            " all. Unwritten: psk; on wire rlx none, on loopback only."
        ),
        examples=["none"],
    )
    hardening: Hardening = Field(
        default=Hardening.GPU,
        description="How much of its host a rank is kept from; strict hides GPUs.",
        examples=["strict"],
    )
    device_env: DeviceEnv = Field(
        default=DeviceEnv.ALL,
        description=(
            "Whether a rank sees all devices its host gives to ranks, in slot order, or its own"
            " alone."
        ),
        examples=["one"],
    )

    @property
    def is_builtin(self) -> bool:
        """True if the ranks run the built-in node."""
        return self.command is None

    @property
    def effective_ready(self) -> Ready:
        """NOTIFY or EXEC, never AUTO."""
        if self.ready is not Ready.AUTO:
            return self.ready
        return Ready.NOTIFY if self.is_builtin else Ready.EXEC

    @property
    def effective_boot(self) -> bool:
        """Whether the ranks start at boot."""
        return self.is_builtin if self.boot is None else self.boot

    @property
    def effective_revert_after(self) -> float:
        """Seconds after which a host reverts by itself."""
        return self.join_timeout + 60 if self.revert_after is None else self.revert_after

    @property
    def effective_wire(self) -> Wire:
        """The protocol between ranks."""
        return self.wire or Wire.NATIVE

    @property
    def effective_security(self) -> Security:
        """How ranks prove that they belong together."""
        if self.security is not None:
            return self.security
        return Security.NONE if self.effective_wire is Wire.RLX else Security.PSK
