"""What the machines said: the lock file of the cluster, saved as JSON and loaded again.

Every value is plain data, so that `plan --survey FILE` compiles the same bytes with no host up.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from rlxdeploy.errors import Finding, Unreachable
from rlxdeploy.model.found import Found
from rlxdeploy.model.host import Host
from rlxdeploy.model.silence import Silence
from rlxdeploy.model.stray import Stray

FORMAT_VERSION = 1
_OTHERWISE = "write another port"
# A word of the command line by which a preflight's listener is known.
PREFLIGHT = "rlxdeploy-preflight"
_DOING = "survey"


@dataclass(frozen=True, slots=True)
class Device:
    """One compute device, as upstream's DeviceInfo (canonical label) and what we add.

    *mem_bytes* 0 means it shares RAM or is unknown (*unified* tells).  *ident* is what
    CUDA_VISIBLE_DEVICES or its vendor's equivalent takes: an index or a `MIG-…` id.  *error* says
    why a device that is there cannot be used; then *available* is False.  *trouble* is what its
    driver warns of although it can be used.
    """

    device: str
    name: str
    mem_bytes: int = 0
    unified: bool = False
    gflops: float = 0.0
    available: bool = True
    ident: str = ""
    error: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Hardware:
    """Sizes in bytes, *gflops* and *io_mbps* 0 where nobody measured.

    *measured_at* is when they were, in seconds since the epoch, 0 if never or unknown.
    *unmeasured* tells why processor, cards or disk could not be.
    """

    cpu: str
    cores: int
    ram_total: int
    ram_avail: int
    disk_free: Mapping[str, int]
    devices: tuple[Device, ...]
    gflops: float = 0.0
    io_mbps: float = 0.0
    measured_at: float = 0.0
    unmeasured: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Interface:
    """One network interface; *addresses* are `address/prefix`.

    *kind* is empty for plain ones, else loopback, bridge, tunnel or the kernel's word (vlan, …).
    """

    name: str
    mac: str
    up: bool
    mtu: int
    addresses: tuple[str, ...]
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Network:
    """Interfaces, and the ones the default routes leave by."""

    interfaces: tuple[Interface, ...]
    default_routes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells whether a python is as before: the host's *text* about it and its *folders*."""

    text: str = ""
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Platform:
    """The system we would start on.

    *programs* maps each program asked for to its absolute path, or to "" with the places searched
    in *searched*.  Versions are "" where the thing is not there.  *launches* are the launch words
    that work there for the asking user, best first.  *user*, *groups* and the folders are those of
    the asking user; *job_groups* are those of the enquiry's user, None where there is none.
    *user_manager* says whether that user's own systemd answers, and lives on without a session (a
    `UserManager`).  *sudo*: it is not root, and sudo makes it so, without a password or with the
    one that was given.  *noise* is what its shell profile prints first, "" for a silent one.
    *stamp* is of what is said of python, see `facts.python`.
    """

    os: str
    arch: str
    hostname: str
    machine_id: str
    boot_id: str
    init: str
    systemd: str
    libc: str
    python: str
    python_version: str
    numpy: str
    user: str
    uid: int
    home: str
    data_home: str
    runtime_dir: str
    clock: float
    programs: Mapping[str, str] = field(default_factory=dict)
    searched: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    launches: tuple[str, ...] = ("process",)
    user_manager: str = ""
    sudo: bool = False
    host_key: str = ""
    noise: str = ""
    job_groups: tuple[str, ...] | None = None
    stamp: Stamp = Stamp()


@dataclass(frozen=True, slots=True)
class PortHolder:
    """Who listens on a TCP port; *pid* 0 where the host would not tell.

    *rank* is the rank of this job that holds it, None for a stranger.  *job* is the job of ours,
    this or another, and *inventory* the file that was applied for it, both "" where nobody knows.
    """

    address: str
    port: int
    pid: int = 0
    command: str = ""
    unit: str = ""
    rank: int | None = None
    job: str = ""
    inventory: str = ""

    def __str__(self) -> str:
        who = f"pid {self.pid}" if self.pid else "a process of another user"
        command = f" ({self.command})" if self.command else ""
        unit = f" of unit {self.unit}" if self.unit else ""
        job = f" for the job {self.job}" if self.job else ""
        return f"{who}{command}{unit}{job}"

    def blocks(self, address: str, port: int) -> bool:
        """Tell whether a listener at *address* would be in this one's way."""
        try:
            both = ip_address(self.address.partition("%")[0]), ip_address(address.partition("%")[0])
        except ValueError:
            return self.port == port
        meet = both[0] == both[1] or any(one.is_unspecified for one in both)
        return meet and self.port == port

    @property
    def tries_links(self) -> bool:
        """Whether it listens for the preflight of an apply, and so is gone in seconds."""
        return PREFLIGHT in self.command.split()

    @property
    def is_stranger(self) -> bool:
        """Whether it is no rank of this job, and will not be gone by itself."""
        return self.rank is None and not self.tries_links

    @property
    def remedy(self) -> str:
        """How the port becomes free; what is not ours is not ours to stop."""
        if self.job:
            line = shlex.join(("rlxdeploy", "stop", self.inventory or "INVENTORY"))
            return f"stop it with `{line}`, or {_OTHERWISE}"
        return f"stop it, or {_OTHERWISE}"


@dataclass(frozen=True, slots=True)
class FileSeen:
    """One of our files as it is; *digest* is the sha256 of its content, a link's is its target.

    That of a file with secrets is one under a key of the controller (`model.keyed`).
    """

    digest: str
    mode: int
    owner: str
    size: int
    kind: str = "file"


@dataclass(frozen=True, slots=True)
class RankSeen:
    """One rank's instance as the host has it.

    *active* uses systemd's words (active, activating, exited, failed, inactive): one that has ended
    well by itself is exited, one that was stopped inactive.  *since* is the wall clock of the start
    in seconds; *node* is the node's own state file, empty when unreadable.
    *nodes* tells of the host's device nodes which its process sees, None where nobody could look.
    """

    rank: int
    active: str
    ready: bool = False
    pid: int = 0
    restarts: int = 0
    since: float = 0.0
    status: str = ""
    exit_status: int | None = None
    enabled: bool = False
    node: Mapping[str, object] = field(default_factory=dict)
    nodes: Mapping[str, bool] | None = None


@dataclass(frozen=True, slots=True)
class Deployed:
    """What `deployment.json` on a host says: one apply's mark.

    *placement* is what `[placement]` asked, as a digest, and each node's layers in rank order.
    *boot* tells whether units start at boot, None where an older rlxdeploy has not said so.
    *secrets*: its environment files hold some, and nobody is to learn their digests.  *ready* is
    notify or exec, "" where an older rlxdeploy has not said so.
    """

    deployment: str
    job: str
    release: str
    generation: int
    plan: str
    launch: str
    world: int
    ranks: tuple[int, ...]
    controller: str
    owner: str
    inventory: str
    applied_at: float
    placement: str = ""
    secrets: bool = False
    boot: bool | None = None
    ready: str = ""


@dataclass(frozen=True, slots=True)
class JobSeen:
    """The job on a host: what is deployed, which of our files are there, how the ranks are.

    *current* is the release `current` points at, "" without one; *releases* come oldest first;
    *files* are keyed by absolute path, those of the current release under `<home>/current/…`.
    *kept* are the marks of earlier releases that can be restored; *unconfirmed* is the
    release that the host goes back to by itself unless its ranks join, "" where it removes the job.
    *strays* are what is not as the last apply left it; nobody can tell while one is under way.
    *shared* are the stored files, by digest, that other jobs have there too.
    """

    deployed: Deployed | None = None
    current: str = ""
    releases: tuple[str, ...] = ()
    files: Mapping[str, FileSeen] = field(default_factory=dict)
    ranks: tuple[RankSeen, ...] = ()
    locked_by: str = ""
    kept: Mapping[str, Deployed] = field(default_factory=dict)
    unconfirmed: str | None = None
    strays: tuple[Stray, ...] = ()
    shared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostFacts:
    """All that one host said; *unanswered* names the questions that missed their deadline."""

    host: Host
    hardware: Hardware
    network: Network
    platform: Platform
    job: JobSeen
    holders: tuple[PortHolder, ...] = ()
    unanswered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """Facts of the hosts that answered, and the reason of each that did not, by host name.

    *names* are the host names in `addr` with the addresses that the controller's resolver has for
    them, none where it has none.  *found* are the hosts that `[discover]` led to, in the order in
    which they become nodes, and *notices* what else there is to say about the search.  *silent*
    tells of those in *failed* what error it was; nobody knows of a survey of an older rlxdeploy.
    *recalled* are hosts that did not answer, are not to change, and stand in *hosts* as they were
    at the last apply.
    """

    hosts: Mapping[str, HostFacts]
    failed: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    found: tuple[Found, ...] = ()
    notices: tuple[Finding, ...] = ()
    silent: Mapping[str, Silence] = field(default_factory=dict)
    recalled: tuple[str, ...] = ()
    format_version: int = FORMAT_VERSION

    @property
    def errors(self) -> Mapping[str, Unreachable]:
        """Why nothing is known of each host that did not answer, by its name."""
        return {name: self.error_of(name) for name in self.failed}

    def error_of(self, host: str, more: str = "") -> Unreachable:
        """Return why nothing is known of *host*; *more* is something else to do about it."""
        if silence := self.silent.get(host):
            return silence.error(host, _DOING, more)
        return Unreachable(host, _DOING, self.failed.get(host, "not surveyed"), more)
