"""The tables about reaching hosts: `[ssh]`, `[network]`, `[runtime]` and `[discover]`."""

from pydantic import Field

from rlxdeploy.model.cidr import Cidr, ExcludedText, Subnet
from rlxdeploy.model.devices import DeviceList
from rlxdeploy.model.names import InterfaceName, SshHost, Text
from rlxdeploy.model.precision import PrecisionName
from rlxdeploy.model.vocabulary import Become, HostKeys, Provision, SshClient
from rlxdeploy.model.written import Count, Flag, Port, Seconds, Written


class Ssh(Written):
    """How hosts are reached; what is unwritten comes from the SSH configuration."""

    user: SshHost | None = Field(
        default=None, description="Login user, over the SSH configuration's.", examples=["ml"]
    )
    port: Port | None = Field(
        default=None, description="SSH port, over the SSH configuration's.", examples=[2222]
    )
    config: Text | None = Field(
        default=None,
        description="SSH configuration file to read in place of the usual one.",
        examples=["ssh_config"],
    )
    identity: Text | None = Field(
        default=None, description="Private key to offer.", examples=["~/.ssh/lab_ed25519"]
    )
    client: SshClient = Field(
        default=SshClient.AUTO,
        description="The SSH client; auto is fabric where it can do what the configuration asks.",
        examples=["openssh"],
    )
    forks: Count = Field(
        default=32, description="How many hosts are talked to at once.", examples=[64]
    )
    connect_timeout: Seconds = Field(
        default=10.0, description="Seconds to wait for a connection.", examples=[5]
    )
    host_keys: HostKeys = Field(
        default=HostKeys.STRICT,
        description="What an unknown host key leads to: refusal, or being remembered.",
        examples=["accept-new"],
    )
    become: Become = Field(
        default=Become.AUTO, description="How root is reached on a host.", examples=["sudo"]
    )


class Network(Written):
    """Which addresses and ports the ranks use among themselves."""

    interface: InterfaceName | None = Field(
        default=None,
        description="Take peer addresses from this interface of each host.",
        examples=["eth1"],
    )
    cidr: Cidr | None = Field(
        default=None,
        description="Take peer addresses from this subnet.",
        examples=["192.168.56.0/24"],
    )
    data_port: Port = Field(
        default=29500,
        description="Port of a rank whose addr names none; the k-th rank of a machine adds k.",
        examples=[29600],
    )
    master_port: Port = Field(
        default=29400,
        description="MASTER_PORT, for scripts that open their own rendezvous at rank 0.",
        examples=[29400],
    )


class Runtime(Written):
    """The Python that runs the bundled runtime on the hosts."""

    python: Text = Field(
        default="python3",
        description="The interpreter on the hosts, by name or absolute path.",
        examples=["/opt/venv/bin/python"],
    )
    provision: Provision = Field(
        default=Provision.AUTO,
        description="Whether a missing environment may be made on the host.",
        examples=["never"],
    )


class Discover(Written):
    """Where to look for nodes that are not written down."""

    ssh_hosts: tuple[SshHost, ...] = Field(
        default=(),
        description="SSH aliases whose hosts become nodes.",
        examples=[["gpu-a", "gpu-b"]],
    )
    subnet: Subnet | None = Field(
        default=None,
        description="Subnet to scan: IPv4 /16 to /32, or IPv6 /112 to /128.",
        examples=["10.0.5.0/24"],
    )
    port: Port = Field(
        default=9100, description="Port in the addr of a found node.", examples=[9100]
    )
    ckpt_dir: Text | None = Field(
        default=None,
        description="Checkpoint folder on the found nodes.",
        examples=["/models/demo"],
    )
    device: DeviceList | None = Field(
        default=None,
        description="Devices of the found nodes. Unwritten: the best one each reports.",
        examples=["cuda"],
    )
    precision: PrecisionName = Field(
        default="bf16", description="Precision of the found nodes.", examples=["f16"]
    )
    timeout_ms: Count = Field(
        default=300, description="Milliseconds to wait for one TCP connect.", examples=[500]
    )
    mdns: Flag = Field(
        default=False, description="Whether to browse for hosts by mDNS.", examples=[True]
    )
    browse_s: Seconds = Field(
        default=3.0, description="Seconds to listen for mDNS answers.", examples=[5]
    )
    advertise: Flag = Field(
        default=False, description="Whether the job announces itself by mDNS.", examples=[True]
    )
    probe: Flag = Field(
        default=True,
        description="Whether found hosts are surveyed over SSH; false takes them as they are.",
        examples=[False],
    )
    scan_ports: tuple[Port, ...] = Field(
        default=(22,),
        min_length=1,
        description="Ports that mark an address as a host when one of them answers; "
        "SSH's own is dialled where it does, else the first one that does.",
        examples=[[22, 2222]],
    )
    exclude: tuple[ExcludedText, ...] = Field(
        default=(),
        description="Addresses, subnets and host names never to be taken.",
        examples=[["10.0.5.1", "10.0.5.240/28"]],
    )
    max_hosts: Count = Field(
        default=4096, description="How many found hosts are surveyed at most.", examples=[256]
    )

    @property
    def is_empty(self) -> bool:
        """True if nothing is looked for."""
        return not (self.ssh_hosts or self.subnet or self.mdns)
