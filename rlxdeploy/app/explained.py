"""What an explanation consists of."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from rlxdeploy.app.compile import Compiled
from rlxdeploy.errors import Finding


@dataclass(frozen=True, slots=True)
class Value:
    """One value and where it comes from; a host has several values of one *name*: addresses."""

    name: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class Explained:
    """A rank or a host: what was settled, the environment of a rank, and what was noticed."""

    subject: str
    values: tuple[Value, ...]
    environment: tuple[Value, ...] = ()
    notices: tuple[Finding, ...] = ()


def noticed(compiled: Compiled, nodes: AbstractSet[int]) -> tuple[Finding, ...]:
    """Return what the compile had to say about any of *nodes*, by their places in the file."""
    keys = tuple(f"node[{index}]" for index in sorted(nodes))
    return tuple(one for one in compiled.resolution.notices if one.key.startswith(keys))
