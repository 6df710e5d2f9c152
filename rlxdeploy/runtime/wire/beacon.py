"""The datagrams by which ranks find one another, without a socket.

    mesh, to everybody   RLXDISC <rank> <ip:port>
    star, to rank 0      RLXQ            answered with   RLXPORT <port>

Fields are separated by blanks; words after the last are passed over.  On the native wire the same
three are `RLXJOB <job> <world> disc <rank> <ip:port>`, `... query <nonce>`, `... port <port>
<nonce>`, each with a last word: an HMAC-SHA256 under the job's key over all before it, or `-`
where there is no key.  <job> is a digest of the job's name.  The nonce of an answer is that of its
query, so an old answer is worth nothing; an old announcement names an address that somebody with
the key had once.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from abc import ABC, abstractmethod
from typing import List, NamedTuple

from rlxdeploy.runtime.address import MAX_PORT, Address, parse_address
from rlxdeploy.runtime.errors import WireError

# Upstream's buffer holds 256 bytes; the longest of ours, on the native wire, has 190.
MAX_DATAGRAM = 512

_DOMAIN = b"rlxdeploy discovery 1\0"
_MAX_RANK = (1 << 32) - 1


class Sighting(NamedTuple):
    """Where a rank says it is."""

    rank: int
    address: Address


class Dialect(ABC):
    """How the ranks of one job speak; every `read_` raises WireError for what is none of theirs.

    *label* tells the job apart from others, where the dialect does that at all.
    """

    label = ""

    @abstractmethod
    def announce(self, rank: int, address: Address) -> bytes:
        """Return what *rank* tells everybody."""

    @abstractmethod
    def read_announcement(self, data: bytes) -> Sighting:
        """Read what a rank tells everybody."""

    @abstractmethod
    def query(self, nonce: str) -> bytes:
        """Return the question where rank 0 listens; *nonce* is fresh and without blanks."""

    @abstractmethod
    def answer(self, query: bytes, port: int) -> bytes:
        """Return the answer to *query*: rank 0 listens on *port*."""

    @abstractmethod
    def read_answer(self, data: bytes, nonce: str) -> int:
        """Read the port in the answer to the query with *nonce*."""


class Plain(Dialect):
    """The rlx wire's: whoever hears it may believe it."""

    def announce(self, rank: int, address: Address) -> bytes:
        """Return an RLXDISC."""
        return f"RLXDISC {rank} {address}".encode()

    def read_announcement(self, data: bytes) -> Sighting:
        """Read an RLXDISC."""
        words = _words(data, "RLXDISC", 3)
        return Sighting(_number(words[1], _MAX_RANK), _address(words[2]))

    def query(self, nonce: str) -> bytes:  # noqa: ARG002 - this dialect has no room for it
        """Return an RLXQ."""
        return b"RLXQ"

    def answer(self, query: bytes, port: int) -> bytes:
        """Answer whatever begins with RLXQ."""
        if not query.startswith(b"RLXQ"):
            raise WireError("no RLXQ")
        return f"RLXPORT {port}".encode()

    def read_answer(self, data: bytes, nonce: str) -> int:  # noqa: ARG002 - as above
        """Read an RLXPORT."""
        return _port(_words(data, "RLXPORT", 2)[1])


class OfJob(Dialect):
    """The native wire's: of one job alone and, with a *key*, only of who holds it."""

    def __init__(self, job: str, world: int, key: bytes) -> None:
        digest = hashlib.sha256(job.encode()).hexdigest()[:16]
        self.label = digest
        self._start, self._key = f"RLXJOB {digest} {world}", key

    def announce(self, rank: int, address: Address) -> bytes:
        """Return a signed announcement."""
        return self._sign(f"disc {rank} {address}")

    def read_announcement(self, data: bytes) -> Sighting:
        """Read a signed announcement."""
        words = self._verified(data, "disc", 2)
        return Sighting(_number(words[0], _MAX_RANK), _address(words[1]))

    def query(self, nonce: str) -> bytes:
        """Return a signed question."""
        return self._sign(f"query {nonce}")

    def answer(self, query: bytes, port: int) -> bytes:
        """Answer a signed question with its nonce."""
        return self._sign(f"port {port} {self._verified(query, 'query', 1)[0]}")

    def read_answer(self, data: bytes, nonce: str) -> int:
        """Read a signed answer with the right nonce."""
        port, theirs = self._verified(data, "port", 2)
        if theirs != nonce:
            raise WireError("an answer to another question")
        return _port(port)

    def _sign(self, rest: str) -> bytes:
        text = f"{self._start} {rest}"
        return f"{text} {self._proof(text)}".encode()

    def _proof(self, text: str) -> str:
        if not self._key:
            return "-"
        return hmac.new(self._key, _DOMAIN + text.encode(), hashlib.sha256).hexdigest()

    def _verified(self, data: bytes, kind: str, fields: int) -> List[str]:
        """Return the *fields* words after *kind*."""
        words = _words(data, "RLXJOB", fields + 5)
        if " ".join(words[:3]) != self._start:
            raise WireError("it is of another job or world")
        text, proof = " ".join(words[:-1]), words[-1]
        if not hmac.compare_digest(proof, self._proof(text)):
            raise WireError("it is not signed with the job's key")
        if words[3] != kind:
            raise WireError(f"it is no {kind}")
        return words[4:-1]


def _words(data: bytes, first: str, count: int) -> List[str]:
    """Return the first *count* words; WireError where these are fewer or begin otherwise."""
    try:
        words = data.decode("ascii").split()
    except UnicodeDecodeError:
        raise WireError("it is no text") from None
    if words[:1] != [first] or len(words) < count:
        raise WireError(f"it is no {first} of {count} words")
    return words[:count]


def _number(word: str, most: int) -> int:
    if not word.isdigit() or len(word) > len(str(most)) or int(word) > most:
        raise WireError(f"{word!r} is no number up to {most}")
    return int(word)


def _port(word: str) -> int:
    port = _number(word, MAX_PORT)
    if not port:
        raise WireError("port 0 is none")
    return port


def _address(word: str) -> Address:
    """Read a numeric address: nobody looks up names for strangers."""
    try:
        address = parse_address(word)
        ipaddress.ip_address(address.host.partition("%")[0])
    except ValueError as error:
        raise WireError(f"{word!r} is no numeric address: {error}") from None
    return address
