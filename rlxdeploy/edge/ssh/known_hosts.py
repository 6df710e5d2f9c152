"""The known_hosts files of this machine: read once, asked often, appended to."""

import os
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path

from rlxdeploy.edge.ssh.route import Hop
from rlxdeploy.facts.known_hosts import (
    AUTHORITY,
    Judgement,
    KnownKey,
    judge,
    known_line,
    known_name,
    parse,
)
from rlxdeploy.facts.ssh_keys import PublicKey

_SALT_BYTES = 20  # the length of a SHA-1, as ssh-keygen -H makes it

_Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A key, as type and fingerprint, that nobody knew of *alias* and that stands in *file* now."""

    alias: str
    key: str
    file: Path


class KnownHosts:
    """All files that any host's configuration names; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: dict[Path, tuple[_Version, tuple[KnownKey, ...]]] = {}
        self._accepted: list[Accepted] = []

    @property
    def accepted(self) -> tuple[Accepted, ...]:
        """The keys that were taken in unseen, as accept-new says, oldest first."""
        return tuple(self._accepted)

    def note(self, hop: Hop, key: str, file: Path) -> None:
        """Note that *key* of *hop* was accepted and stands in *file*."""
        self._accepted.append(Accepted(hop.alias, key, file))

    def judge(self, hop: Hop, key: PublicKey) -> Judgement:
        """Return how *key* stands for *hop*."""
        resolved = hop.resolved
        lines = self.lines(hop)
        return judge(lines, resolved.hostname, resolved.port, resolved.host_key_alias, key)

    def lines(self, hop: Hop) -> list[KnownKey]:
        """Return the lines of the files that count for *hop*, the user's first."""
        return [
            line for name in hop.resolved.known_hosts_files for line in self._file(hop.path(name))
        ]

    def about(self, hop: Hop) -> list[KnownKey]:
        """Return the lines that speak of *hop*."""
        name = name_of(hop)
        return [line for line in self.lines(hop) if line.speaks_of(name)]

    def has_authority(self, hop: Hop) -> bool:
        """Tell whether a certificate authority is to vouch for *hop*."""
        return any(line.marker == AUTHORITY for line in self.about(hop))

    def remember(self, hop: Hop, key: PublicKey) -> Path:
        """Append *key* to the user's first file, hashed where HashKnownHosts says so.

        One write to a descriptor opened for appending: whoever appends too, each line stays whole.
        Raises OSError where there is no such file or it cannot be written.
        """
        if not hop.resolved.remembers_in:
            raise FileNotFoundError(
                "UserKnownHostsFile is none: there is nowhere to remember a key"
            )
        path = hop.path(hop.resolved.remembers_in)
        salt = secrets.token_bytes(_SALT_BYTES) if hop.resolved.says("hashknownhosts") else None
        line = known_line(name_of(hop), key, salt)
        with self._lock:
            _append(path, line)
        return path

    def _file(self, path: Path) -> tuple[KnownKey, ...]:
        try:
            stat = path.stat()
            version = (stat.st_mtime_ns, stat.st_size)
            with self._lock:
                known = self._read.get(path)
                if known is None or known[0] != version:
                    text = path.read_text(encoding="utf-8", errors="replace")
                    known = self._read[path] = (version, tuple(parse(text, str(path))))
        except OSError:
            return ()  # as ssh: a file that is not there knows nobody
        return known[1]


def name_of(hop: Hop) -> str:
    """Return the name under which the key of *hop* is filed."""
    return known_name(hop.resolved.hostname, hop.resolved.port, hop.resolved.host_key_alias)


def _append(path: Path, line: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(file).st_size
        unfinished = size > 0 and os.pread(file, 1, size - 1) != b"\n"
        os.write(file, (("\n" if unfinished else "") + line).encode())
        os.fsync(file)
    finally:
        os.close(file)
