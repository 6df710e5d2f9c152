"""Public SSH keys: as text lines, as the clear part of private files, and their fingerprints.

The formats are OpenSSH's: `type base64 [comment]` lines, and the `openssh-key-v1` container of its
PROTOCOL.key, whose public part is never encrypted.
"""

import base64
import binascii
import hashlib
import struct
from dataclasses import dataclass

_ARMOR = b"-----BEGIN OPENSSH PRIVATE KEY-----"
_ARMOR_END = b"-----END OPENSSH PRIVATE KEY-----"
_MAGIC = b"openssh-key-v1\x00"
_LENGTH = struct.Struct(">I")
_ENCRYPTED_PEM = (b"ENCRYPTED",)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One public key: the type its blob begins with, and the blob of RFC 4253 section 6.6."""

    kind: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """The fingerprint as OpenSSH shows it: `SHA256:` and unpadded base64."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode()
        return f"SHA256:{digest.rstrip('=')}"

    @property
    def is_certificate(self) -> bool:
        return "-cert-v" in self.kind

    @property
    def is_security_key(self) -> bool:
        return self.kind.startswith("sk-")

    @property
    def line(self) -> str:
        """The key as it stands in a `.pub` or known_hosts file, without name or comment."""
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"

    def allowed_by(self, algorithms: tuple[str, ...]) -> bool:
        """Tell whether a list of signature algorithms lets this key be used."""
        if self.kind == "ssh-rsa":
            return bool({"rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"}.intersection(algorithms))
        return self.kind in algorithms

    def __str__(self) -> str:
        return f"{self.kind} {self.fingerprint}"


def from_blob(blob: bytes) -> PublicKey:
    """Return the key whose blob this is; raise ValueError if it does not begin with a type."""
    kind, _ = _string(blob)
    return PublicKey(kind.decode("ascii"), blob)


def from_base64(kind: str, text: str) -> PublicKey:
    """Return the key of a line's two words; raise ValueError unless they agree."""
    try:
        key = from_blob(base64.b64decode(text, validate=True))
    except binascii.Error as error:
        raise ValueError(f"the key is no base64: {error}") from error
    if key.kind != kind:
        raise ValueError(f"the line says {kind}, the key says {key.kind}")
    return key


def from_public_file(content: bytes) -> PublicKey | None:
    """Return the key of a `.pub` file's first line, None if the file is no public key."""
    words = content.split(b"\n", 1)[0].split()
    try:
        return from_base64(words[0].decode("ascii"), words[1].decode("ascii"))
    except (ValueError, IndexError):
        return None


def from_private_file(content: bytes) -> PublicKey | None:
    """Return the public part of an OpenSSH private file, encrypted or not, else None."""
    try:
        container = _container(content)
        *_, rest = _three_strings(container)
        blob, _ = _string(rest[_LENGTH.size :])
        return from_blob(blob)
    except (ValueError, struct.error):
        return None


def is_encrypted(content: bytes) -> bool:
    """Tell whether a private file wants a passphrase."""
    try:
        cipher, *_ = _three_strings(_container(content))
    except (ValueError, struct.error):
        return any(word in content for word in _ENCRYPTED_PEM)
    return cipher != b"none"


def _container(content: bytes) -> bytes:
    """Return what follows the magic; raise ValueError for another format."""
    _, begin, rest = content.partition(_ARMOR)
    body, end, _ = rest.partition(_ARMOR_END)
    if not (begin and end):
        raise ValueError("no OpenSSH private key")
    decoded = base64.b64decode(b"".join(body.split()))
    if not decoded.startswith(_MAGIC):
        raise ValueError("no openssh-key-v1 container")
    return decoded[len(_MAGIC) :]


def _three_strings(container: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Return cipher, KDF and KDF options, and what follows: a count, then the public key."""
    cipher, rest = _string(container)
    kdf, rest = _string(rest)
    options, rest = _string(rest)
    return cipher, kdf, options, rest


def _string(data: bytes) -> tuple[bytes, bytes]:
    """Split a length-prefixed string from the front of *data*."""
    if len(data) < _LENGTH.size:
        raise ValueError("the key is cut short")
    size = _LENGTH.unpack_from(data)[0]
    end = _LENGTH.size + size
    if len(data) < end:
        raise ValueError("the key is cut short")
    return data[_LENGTH.size : end], data[end:]
