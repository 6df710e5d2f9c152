"""Which connections the ranks will make, and what came of trying each before anything changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rlxdeploy.model.host import Host
from rlxdeploy.model.resolution import Endpoint


class How(StrEnum):
    """What became of one link, or of one rank's place to listen."""

    ANSWERED = "answered"
    REFUSED = "refused"
    SILENT = "timed out"
    NO_ROUTE = "no route"
    STRANGER = "a stranger answered"
    BROKEN = "failed"
    TAKEN = "port in use"
    DEAF = "cannot listen"
    UNPROVEN = "not proven"
    SPARED = "not dialled"

    @property
    def bad(self) -> bool:
        """Whether the group cannot form like this; what nobody could try is neither."""
        return self not in {How.ANSWERED, How.UNPROVEN, How.SPARED}


@dataclass(frozen=True, slots=True)
class Found:
    """How it went, and what else there is to say of it."""

    how: How
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """One connection of the runtime: the *dialler* opens it to the *listener* at *to*.

    Both are ranks; *ours* tells that we listen there in the listener's place, so that it is proven
    who answers.
    """

    dialler: int
    listener: int
    source: str
    target: str
    to: Endpoint
    ours: bool = True


@dataclass(frozen=True, slots=True)
class Post:
    """Where one rank will listen, and somebody listens in its place meanwhile."""

    rank: int
    at: Endpoint


@dataclass(frozen=True, slots=True)
class Trial:
    """What one host is asked: to listen at its *posts*, then to dial; *python* is the job's."""

    host: Host
    python: str
    posts: tuple[Post, ...]


@dataclass(frozen=True, slots=True)
class Preflight:
    """What is to be tried, by host, and what of each link that is not; or *why_not* at all.

    Of a big mesh *links* are a sample: *untried* more are not looked at.
    """

    trials: Mapping[str, Trial] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    spared: Mapping[Link, str] = field(default_factory=dict)
    why_not: str = ""
    untried: int = 0


@dataclass(frozen=True, slots=True)
class Posted:
    """What came of listening on one host: the ranks for which somebody cannot, each with why.

    *bare* says why nobody could try at all, "" where somebody did.
    """

    failed: Mapping[int, Found] = field(default_factory=dict)
    bare: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """One link and what became of it."""

    link: Link
    found: Found


@dataclass(frozen=True, slots=True)
class Blocked:
    """One rank that cannot listen on its host, and why; *remedy* is what to do."""

    rank: int
    host: str
    at: Endpoint
    found: Found
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Every link as it was found in *seconds*, or *why_not* where none was tried.

    Of a big mesh it is a sample, and *untried* tells how many links there are besides.
    """

    tried: tuple[Tried, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    seconds: float = 0.0
    why_not: str = ""
    untried: int = 0

    @property
    def ok(self) -> bool:
        return not self.blocked and not any(one.found.how.bad for one in self.tried)

    def count(self, *hows: How) -> int:
        """Return how many links came to one of *hows*."""
        return sum(one.found.how in hows for one in self.tried)
