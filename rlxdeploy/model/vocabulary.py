"""The closed vocabularies of an inventory; each member answers its own questions."""

from enum import StrEnum


class Topology(StrEnum):
    """Who is connected to whom."""

    MESH = "mesh"
    STAR = "star"


class Launch(StrEnum):
    """What starts a rank on its host and keeps it running."""

    AUTO = "auto"
    SYSTEMD = "systemd"
    SYSTEMD_USER = "systemd-user"
    PROCESS = "process"


class Ready(StrEnum):
    """When a rank counts as started: it says so itself, or its main process is alive."""

    AUTO = "auto"
    NOTIFY = "notify"
    EXEC = "exec"


class Restart(StrEnum):
    """What happens to a rank that ends."""

    ON_FAILURE = "on-failure"
    ALWAYS = "always"
    NO = "no"


class Wire(StrEnum):
    """The protocol between ranks: our own, or the public RLX transport's."""

    NATIVE = "native"
    RLX = "rlx"


class Security(StrEnum):
    """How ranks prove to one another that they belong together."""

    PSK = "psk"
    NONE = "none"
    TLS = "tls"


class Hardening(StrEnum):
    """How much of its host a rank is kept from."""

    GPU = "gpu"
    STRICT = "strict"
    OFF = "off"


class DeviceEnv(StrEnum):
    """Whether a rank sees every device its host gives to ranks, or its own alone."""

    ALL = "all"
    ONE = "one"


class SshClient(StrEnum):
    """The program that opens SSH sessions."""

    AUTO = "auto"
    FABRIC = "fabric"
    OPENSSH = "openssh"


class HostKeys(StrEnum):
    """What an unknown host key leads to."""

    STRICT = "strict"
    ACCEPT_NEW = "accept-new"


class Become(StrEnum):
    """How root is reached on a host."""

    AUTO = "auto"
    SUDO = "sudo"
    NONE = "none"


class UserManager(StrEnum):
    """How long a user's own systemd lives: not at all, with a session of the user's, or always."""

    NONE = ""
    IN_SESSIONS = "in-sessions"
    LINGERS = "lingers"


class Provision(StrEnum):
    """Whether a missing Python environment may be made on the host."""

    AUTO = "auto"
    NEVER = "never"


class Policy(StrEnum):
    """How layers are shared out among nodes."""

    RAM_BALANCED = "ram_balanced"
    THROUGHPUT = "throughput"
    AUTO = "auto"
    MANUAL = "manual"


class Optimize(StrEnum):
    """What a placement is to be good at."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"
    MEMORY = "memory"


class UnknownKv(StrEnum):
    """What to do about a model whose key-value cache size cannot be told."""

    FAIL = "fail"
    ASSUME = "assume"
    IGNORE = "ignore"


class KvCache(StrEnum):
    """Where a node keeps its key-value cache."""

    NONE = "none"
    HOST = "host"
    DEVICE = "device"


class Role(StrEnum):
    """A node's part in the group."""

    ACTIVE = "active"
    STANDBY = "standby"
    DRAINING = "draining"

    @property
    def has_rank(self) -> bool:
        """True if the node counts in WORLD."""
        return self is Role.ACTIVE
