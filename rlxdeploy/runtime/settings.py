"""What a rank is told: the environment of rlx-driver's `Node::from_env`, and ours on top.

Names, meanings and defaults are upstream's, except that a value which upstream passes over in
silence is an error here: an unknown TOPOLOGY, a number that is none, a DIAL_OUT that is no truth
value, a RANK outside WORLD, a mesh with more or fewer PEERS than ranks, several ranks and nobody
to dial.  A WORLD of 1 needs no PEERS.  DIAL_OUT=false means off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from rlxdeploy.runtime.address import MAX_PORT, Address, parse_address
from rlxdeploy.runtime.errors import NotSupported, SettingsError

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

_Reader = Callable[[str, str], Any]


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
    def listen_address(self) -> Optional[Address]:
        """Where this rank listens: RLX_BIND, else its own PEERS entry; None where it does not."""
        if self.world == 1 or (self.star and self.rank):
            return None
        own = self.peers[self.rank]
        return parse_address(self.bind, own.port) if self.bind else own

    def check(self) -> None:
        """Raise SettingsError where the settings contradict one another."""
        _require(1 <= self.world <= MAX_WORLD, "WORLD", self.world, f"1..{MAX_WORLD}")
        _require(0 <= self.rank < self.world, "RANK", self.rank, f"0..{self.world - 1} (WORLD - 1)")
        _require(self.topology in TOPOLOGIES, "TOPOLOGY", self.topology, _either(TOPOLOGIES))
        _require(self.wire in WIRES, "RLX_WIRE", self.wire, _either(WIRES))
        _require(
            self.security is None or self.security in SECURITIES,
            "RLX_SECURITY",
            self.security,
            _either(SECURITIES),
        )
        if self.wire == "rlx" and self.security == "psk":
            raise SettingsError("RLX_SECURITY", "psk", "none, as the rlx wire knows no keys")
        if self.discover:
            top = self.data_port + self.rank
            _require(
                top <= MAX_PORT, "DATA_PORT", self.data_port, f"DATA_PORT + RANK <= {MAX_PORT}"
            )
        else:
            self._check_peers()

    def check_supported(self) -> None:
        """Raise NotSupported for what is understood but not carried out by this version."""
        if self.wire != "rlx":
            raise NotSupported(f"RLX_WIRE={self.wire} is not supported yet; allowed now: rlx")
        if self.discover:
            raise NotSupported("DISCOVER is not supported yet; write the addresses into PEERS")

    def _check_peers(self) -> None:
        written = ",".join(map(str, self.peers)) or None
        if not self.peers and self.world > 1:
            raise SettingsError("PEERS", written, "HOST:PORT for every rank, or DISCOVER=1")
        if self.peers and not self.star and len(self.peers) != self.world:
            raise SettingsError("PEERS", written, f"{self.world} addresses (WORLD) in a mesh")


def _require(holds: bool, variable: str, value: object, allowed: str) -> None:  # noqa: FBT001 - the claim
    if not holds:
        raise SettingsError(variable, str(value), allowed)


def _either(words: Tuple[str, ...]) -> str:
    return " or ".join(words)


def _integer(least: int, most: int) -> _Reader:
    """Read what Rust's `parse` reads: digits, perhaps after a plus."""

    def read(variable: str, text: str) -> int:
        if not re.fullmatch(r"\+?[0-9]+", text) or not least <= int(text[-20:]) <= most:
            raise SettingsError(variable, text, f"an integer in {least}..{most}")
        return int(text)

    return read


def _seconds(variable: str, text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", text) or not float(text):
        raise SettingsError(variable, text, "seconds, over 0")
    return float(text)


def _one_of(words: Tuple[str, ...]) -> _Reader:
    def read(variable: str, text: str) -> str:
        _require(text in words, variable, text, _either(words))
        return text

    return read


def _truth(variable: str, text: str) -> bool:
    _require(text in {"0", "1", "true", "false"}, variable, text, "0, 1, true or false")
    return text in {"1", "true"}


def _set_and_not_zero(_variable: str, text: str) -> bool:
    return text != "0"


def _text(_variable: str, text: str) -> str:
    return text


def _addresses(variable: str, text: str) -> Tuple[Address, ...]:
    return tuple(_address(variable, entry) for entry in text.split(","))


def _address(variable: str, text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise SettingsError(variable, text, f"HOST:PORT or [IPV6]:PORT ({error})") from None


def _bind(variable: str, text: str) -> str:
    try:
        parse_address(text, MAX_PORT)
    except ValueError as error:
        raise SettingsError(variable, text, f"HOST, HOST:PORT or [IPV6]:PORT ({error})") from None
    return text


_READERS: Tuple[Tuple[str, str, _Reader], ...] = (
    ("RANK", "rank", _integer(0, MAX_WORLD - 1)),
    ("WORLD", "world", _integer(1, MAX_WORLD)),
    ("TOPOLOGY", "topology", _one_of(TOPOLOGIES)),
    ("HEAP_MB", "heap_bytes", _integer(0, _MAX_HEAP_MIB)),
    ("DISCOVER", "discover", _set_and_not_zero),
    ("DISC_PORT", "disc_port", _integer(1, MAX_PORT)),
    ("DATA_PORT", "data_port", _integer(1, MAX_PORT)),
    ("DISCOVER_HOST", "discover_host", _text),
    ("RLX_DETERMINISTIC_REDUCE", "deterministic", lambda _, text: text not in {"", "0"}),
    ("RLX_WIRE", "wire", _one_of(WIRES)),
    ("RLX_SECURITY", "security", _one_of(SECURITIES)),
    ("RLX_JOB", "job", _text),
    ("RLX_PLAN", "plan", _text),
    ("RLX_BIND", "bind", _bind),
    ("RLX_KEY_FILE", "key_file", _text),
    ("RLX_STATE_FILE", "state_file", _text),
    ("RLX_JOIN_TIMEOUT", "join_timeout", _seconds),
    ("RLX_PEER_TIMEOUT", "peer_timeout", _seconds),
    ("RLX_SPIN_US", "spin_us", _integer(0, 1_000_000)),
)


def _read(environ: Mapping[str, str]) -> Dict[str, Any]:
    """Return the fields that *environ* sets; DIAL_OUT chooses a star, DISCOVER replaces PEERS."""
    values = {
        field: read(variable, environ[variable])
        for variable, field, read in _READERS
        if variable in environ
    }
    if "DIAL_OUT" in environ and _truth("DIAL_OUT", environ["DIAL_OUT"]):
        values["topology"] = "star"
    if "HEAP_MB" in environ:
        values["heap_bytes"] *= _MIB
    if "PEERS" in environ and not values.get("discover"):
        values["peers"] = _addresses("PEERS", environ["PEERS"])
    return values
