"""known_hosts files as OpenSSH reads them (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT), line by line.

One odd line costs that line, not the file.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from rlxdeploy.errors import Place
from rlxdeploy.facts.ssh_keys import PublicKey, from_base64

REVOKED = "@revoked"
AUTHORITY = "@cert-authority"

_HASHED = "|1|"
_SSH_PORT = 22


class Standing(StrEnum):
    """How a host's key stands to what is known."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One line: who it speaks of, the key, and where it stands."""

    names: str
    key: PublicKey
    place: Place
    marker: str = ""

    @property
    def where(self) -> str:
        """The line as `file:line`."""
        return f"{self.place.file}:{self.place.line}"

    def speaks_of(self, name: str) -> bool:
        """Tell whether the line's hashed name or patterns cover *name*."""
        if self.names.startswith(_HASHED):
            return _is_hash_of(self.names, name)
        patterns = self.names.lower().split(",")
        if any(p.startswith("!") and _matches(p[1:], name) for p in patterns):
            return False
        return any(_matches(p, name) for p in patterns if not p.startswith("!"))


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the files say of a key; *evidence* are the lines that say so."""

    standing: Standing
    evidence: tuple[KnownKey, ...] = ()


def known_name(hostname: str, port: int, alias: str = "") -> str:
    """Return the name under which a host's key is filed; an alias stands as it is."""
    if alias:
        return alias.lower()
    name = hostname.lower()
    return name if port == _SSH_PORT else f"[{name}]:{port}"


def parse(text: str, file: str) -> Iterator[KnownKey]:
    """Yield the lines of a file that hold a key; comments and what nobody can read are passed."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        try:
            names, kind, encoded = words[:3]
            key = from_base64(kind, encoded)
        except ValueError:
            continue
        if not names.startswith("#"):
            yield KnownKey(names, key, Place(file, number), marker)


def judge(
    lines: Sequence[KnownKey], hostname: str, port: int, alias: str, key: PublicKey
) -> Judgement:
    """Return how *key* stands, as OpenSSH judges it.

    Any other key under the host's name makes the key a changed one, of whatever type the two are.
    On another port than 22 a line for the bare host name counts if it holds this very key.
    """
    mine = [line for line in lines if line.speaks_of(known_name(hostname, port, alias))]
    same = [line for line in mine if line.key == key]
    if revoked := [line for line in same if line.marker == REVOKED]:
        return Judgement(Standing.REVOKED, tuple(revoked))
    if trusted := [line for line in same if not line.marker]:
        return Judgement(Standing.KNOWN, tuple(trusted))
    if others := [line for line in mine if not line.marker]:
        return Judgement(Standing.CHANGED, tuple(others))
    if not alias and port != _SSH_PORT:
        bare = judge(lines, hostname, _SSH_PORT, "", key)
        if bare.standing in (Standing.KNOWN, Standing.REVOKED):
            return bare
    return Judgement(Standing.UNKNOWN)


def known_line(name: str, key: PublicKey, salt: bytes | None = None) -> str:
    """Return the line that makes *key* known for *name*; with a *salt* the name is hashed."""
    if salt is None:
        return f"{name} {key.line}\n"
    digest = _digest(salt, name)
    hashed = f"{_HASHED}{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
    return f"{hashed} {key.line}\n"


def _matches(pattern: str, name: str) -> bool:
    # Only * and ? are special to ssh; fnmatch would read the [ of [host]:port as a set.
    if "*" not in pattern and "?" not in pattern:
        return pattern == name
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def _is_hash_of(hashed: str, name: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part) for part in hashed[len(_HASHED) :].split("|"))
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(digest, _digest(salt, name))


def _digest(salt: bytes, name: str) -> bytes:
    return hmac.new(salt, name.encode(), hashlib.sha1).digest()
