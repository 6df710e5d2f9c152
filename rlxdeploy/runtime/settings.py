"""What a rank is told: the environment of rlx-driver's `Node::from_env`, and ours on top.

Names, meanings and defaults are upstream's, except that a value which upstream passes over in
silence is an error here: an unknown TOPOLOGY, a number that is none, a DIAL_OUT that is no truth
value, a RANK outside WORLD, a mesh with more or fewer PEERS than ranks, several ranks and nobody
to dial.  A WORLD of 1 needs no PEERS.  DIAL_OUT=false means off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple

from rlxdeploy.runtime import readers
from rlxdeploy.runtime.address import MAX_PORT, Address, parse_address
from rlxdeploy.runtime.errors import SettingsError

UPSTREAM_VARIABLES = (
    "RANK",
    "WORLD",
    "PEERS",
    "TOPOLOGY",
    "DIAL_OUT",
    "HEAP_MB",
    "DISCOVER",
    "DISC_PORT",
    "DATA_PORT",
    "DISCOVER_HOST",
    "RLX_DETERMINISTIC_REDUCE",
)
OWN_VARIABLES = (
    "RLX_WIRE",
    "RLX_SECURITY",
    "RLX_JOB",
    "RLX_PLAN",
    "RLX_BIND",
    "RLX_KEY_FILE",
    "RLX_STATE_FILE",
    "RLX_JOIN_TIMEOUT",
    "RLX_PEER_TIMEOUT",
    "RLX_SPIN_US",
    "RLX_ADVERTISE",
)
VARIABLES = UPSTREAM_VARIABLES + OWN_VARIABLES

TOPOLOGIES = ("mesh", "star")
WIRES = ("rlx", "native")
SECURITIES = ("psk", "none")
# Every rank keeps a table of all ranks: a bigger WORLD is a slip of the pen, not a cluster.
MAX_WORLD = 65536
_MIB = 1 << 20
# Upstream counts the heap in u32 offsets.
_MAX_HEAP_MIB = 4095


@dataclass(frozen=True)
class Settings:
    """One rank's settings; `check` says whether they fit together.

    *timeout* (seconds) bounds each call; *security* is None where nobody wrote it.
    """

    rank: int = 0
    world: int = 1
    peers: Tuple[Address, ...] = ()
    topology: str = "mesh"
    heap_bytes: int = 64 * _MIB
    discover: bool = False
    disc_port: int = 29600
    data_port: int = 29500
    discover_host: Optional[str] = None
    deterministic: bool = False
    wire: str = "rlx"
    security: Optional[str] = None
    job: str = ""
    plan: str = ""
    bind: Optional[str] = None
    key_file: Optional[str] = None
    state_file: Optional[str] = None
    join_timeout: float = 120.0
    peer_timeout: float = 10.0
    spin_us: int = 200
    advertise: bool = False
    timeout: float = 120.0

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """Read and check a rank's environment; SettingsError names the variable at fault."""
        settings = cls(**_read(environ))
        settings.check()
        return settings

    @property
    def star(self) -> bool:
        """Whether all links lead to rank 0."""
        return self.topology == "star"

    @property
    def uses_key(self) -> bool:
        """Whether ranks prove to one another that they hold the job's key."""
        if self.security is None:
            return self.wire == "native" and self.key_file is not None
        return self.security == "psk"

    @property
    def listen_address(self) -> Optional[Address]:
        """Where this rank listens: RLX_BIND, else its own PEERS entry; None where it does not."""
        if self.world == 1 or (self.star and self.rank):
            return None
        own = self.peers[self.rank]
        return parse_address(self.bind, own.port) if self.bind else own

    def check(self) -> None:
        """Raise SettingsError where the settings contradict one another."""
        for variable, value, allowed in (
            ("TOPOLOGY", self.topology, TOPOLOGIES),
            ("RLX_WIRE", self.wire, WIRES),
            ("RLX_SECURITY", self.security or "none", SECURITIES),
        ):
            readers.one_of(allowed)(variable, value)
        if not 1 <= self.world <= MAX_WORLD:
            raise SettingsError("WORLD", str(self.world), f"1..{MAX_WORLD}")
        if not 0 <= self.rank < self.world:
            raise SettingsError("RANK", str(self.rank), f"0..{self.world - 1} (WORLD - 1)")
        self._check_security()
        if self.bind is not None:
            readers.bind_address("RLX_BIND", self.bind)
        if not self.discover:
            self._check_peers()
        elif self.data_port + self.rank > MAX_PORT:
            raise SettingsError("DATA_PORT", str(self.data_port), f"DATA_PORT + RANK <= {MAX_PORT}")

    def _check_security(self) -> None:
        if self.wire == "rlx" and self.security == "psk":
            raise SettingsError("RLX_SECURITY", "psk", "none, as the rlx wire knows no keys")
        if self.security == "psk" and self.key_file is None:
            raise SettingsError("RLX_KEY_FILE", None, "a file with the job's key of 64 hex digits")

    def _check_peers(self) -> None:
        written = ",".join(map(str, self.peers)) or None
        if not self.peers and self.world > 1:
            raise SettingsError("PEERS", written, "HOST:PORT for every rank, or DISCOVER=1")
        if self.peers and not self.star and len(self.peers) != self.world:
            raise SettingsError("PEERS", written, f"{self.world} addresses (WORLD) in a mesh")


_READERS: Tuple[Tuple[str, str, readers.Reader], ...] = (
    ("RANK", "rank", readers.integer(0, MAX_WORLD - 1)),
    ("WORLD", "world", readers.integer(1, MAX_WORLD)),
    ("TOPOLOGY", "topology", readers.one_of(TOPOLOGIES)),
    ("HEAP_MB", "heap_bytes", readers.integer(0, _MAX_HEAP_MIB)),
    ("DISCOVER", "discover", readers.set_and_not_zero),
    ("DISC_PORT", "disc_port", readers.integer(1, MAX_PORT)),
    ("DATA_PORT", "data_port", readers.integer(1, MAX_PORT)),
    ("DISCOVER_HOST", "discover_host", readers.words),
    ("RLX_DETERMINISTIC_REDUCE", "deterministic", readers.filled_and_not_zero),
    ("RLX_WIRE", "wire", readers.one_of(WIRES)),
    ("RLX_SECURITY", "security", readers.one_of(SECURITIES)),
    ("RLX_JOB", "job", readers.name),
    ("RLX_PLAN", "plan", readers.name),
    ("RLX_BIND", "bind", readers.bind_address),
    ("RLX_KEY_FILE", "key_file", readers.path),
    ("RLX_STATE_FILE", "state_file", readers.path),
    ("RLX_JOIN_TIMEOUT", "join_timeout", readers.seconds),
    ("RLX_PEER_TIMEOUT", "peer_timeout", readers.seconds),
    ("RLX_SPIN_US", "spin_us", readers.integer(0, 1_000_000)),
    ("RLX_ADVERTISE", "advertise", readers.truth),
)


def _read(environ: Mapping[str, str]) -> Dict[str, Any]:
    """Return the fields that *environ* sets; DIAL_OUT chooses a star, DISCOVER replaces PEERS."""
    values = {
        field: read(variable, environ[variable])
        for variable, field, read in _READERS
        if variable in environ
    }
    if "DIAL_OUT" in environ and readers.truth("DIAL_OUT", environ["DIAL_OUT"]):
        values["topology"] = "star"
    if "HEAP_MB" in environ:
        values["heap_bytes"] *= _MIB
    if "PEERS" in environ and not values.get("discover"):
        values["peers"] = readers.addresses("PEERS", environ["PEERS"])
    return values
