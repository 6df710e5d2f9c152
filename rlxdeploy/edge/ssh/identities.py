"""Which keys are offered to a host, in the order in which ssh offers them.

First the agent's keys that the configuration names, in the agent's order; then, unless
IdentitiesOnly, the agent's others; then those that are only on disk.  A key that cannot sign here
(encrypted, unreadable, open to others) is passed over with its reason: nobody is asked.
"""

import os
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from paramiko import PKey, SSHException
from paramiko.agent import AgentKey, AgentSSH
from paramiko.pkey import UnknownKeyType

from rlxdeploy.edge.ssh.route import Hop
from rlxdeploy.facts.ssh_keys import (
    PublicKey,
    from_blob,
    from_private_file,
    from_public_file,
    is_encrypted,
)

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# What paramiko and the library below it raise for a file that they cannot make a key of.
_NO_KEY = (
    *(OSError, ValueError, TypeError),
    *(SSHException, UnknownKeyType, UnsupportedAlgorithm),
)


class Unusable(Exception):
    """A key cannot sign; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Identity:
    """An IdentityFile that is there; *public* is None where only the private part would tell."""

    path: Path
    public: PublicKey | None
    private: bytes

    @property
    def has_certificate(self) -> bool:
        return os.access(self.path.with_name(f"{self.path.name}-cert.pub"), os.R_OK)

    def load(self) -> PKey:
        """Return the private key; raise Unusable."""
        if not self.private or from_public_file(self.private):
            raise Unusable(f"{self.path}: there is no private key, and no agent holds it")
        status = self.path.stat()
        if status.st_uid == os.getuid() and status.st_mode & _OTHERS:
            raise Unusable(f"{self.path}: others may read it (chmod 600)")
        if is_encrypted(self.private):
            raise Unusable(f"{self.path}: it wants a passphrase, and no agent holds it")
        try:
            return PKey.from_path(self.path)
        except _NO_KEY as error:
            raise Unusable(f"{self.path}: {error}") from error


@dataclass(frozen=True, slots=True)
class Offer:
    """One key to offer: what people call it, and how to get at it."""

    label: str
    public: PublicKey | None
    load: Callable[[], PKey]

    @property
    def described(self) -> str:
        """The key for people, with the fingerprint that the server's log shows too."""
        return f"{self.label} {self.public.fingerprint}" if self.public else self.label


class Agent(AgentSSH):  # type: ignore[misc]  # paramiko has no types
    """The agent that the configuration of *hop* names; one without keys where there is none."""

    def __init__(self, hop: Hop, patience: float) -> None:
        super().__init__()
        if path := _agent_socket(hop):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(patience)
            try:
                connection.connect(path)
                self._connect(connection)
            except (OSError, SSHException):
                connection.close()  # as ssh: an agent that does not answer holds no keys

    def close(self) -> None:
        """Hang up; the keys sign no more."""
        self._close()


def identities(hop: Hop) -> list[Identity]:
    """Return the identity files of *hop* that are there."""
    paths = dict.fromkeys(hop.path(written) for written in hop.resolved.identity_files)
    return [identity for path in paths if (identity := _read(path))]


def offers(hop: Hop, agent: Agent, files: Sequence[Identity] | None = None) -> list[Offer]:
    """Return the keys to offer to *hop*, best first; *files* are its identities if known."""
    algorithms = hop.resolved.listed("pubkeyacceptedalgorithms")
    files = list(identities(hop) if files is None else files)
    by_key = {file.public: file for file in files if file.public}
    named, others = [], []
    for key in agent.get_keys():
        offer = _from_agent(key)
        file = by_key.pop(from_blob(key.blob), None)
        if file is not None:
            files.remove(file)
            named.append(offer)
        elif not hop.resolved.says("identitiesonly"):
            others.append(offer)
    on_disk = [Offer(str(file.path), file.public, file.load) for file in files]
    every = (*named, *others, *on_disk)
    return [o for o in every if o.public is None or o.public.allowed_by(algorithms)]


def public_keys(hop: Hop, agent: Agent) -> Iterator[PublicKey]:
    """Yield the public parts of what would be offered."""
    for offer in offers(hop, agent):
        if offer.public:
            yield offer.public


def _from_agent(key: AgentKey) -> Offer:
    public = from_blob(key.blob)

    def load() -> AgentKey:
        if key.inner_key is None:
            raise Unusable(f"{key.comment}: fabric cannot use {public.kind} keys")
        return key

    return Offer(f"{key.comment or 'a key'} (agent)", public, load)


def _agent_socket(hop: Hop) -> str:
    """Return the path of IdentityAgent; "" for none, ssh's default where it is not written."""
    written = " ".join(hop.resolved.options.get("identityagent", ("SSH_AUTH_SOCK",)))
    if written.lower() == "none":
        return ""
    if written == "SSH_AUTH_SOCK" or written.startswith("$"):
        return os.environ.get(written.lstrip("$").strip("{}"), "")
    return str(hop.path(written))


def _read(path: Path) -> Identity | None:
    private, beside = _content(path), _content(path.with_name(f"{path.name}.pub"))
    return _identity(path, private, beside) if private or beside else None


@lru_cache(maxsize=64)
def _identity(path: Path, private: bytes, beside: bytes) -> Identity:
    # All hosts of a run are mostly offered the same few files.
    public = from_public_file(private) or from_public_file(beside) or from_private_file(private)
    return Identity(path, public, private)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
