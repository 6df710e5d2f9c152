"""An inventory as read, with the places of its keys: later stages point at what they mean."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from rlxdeploy.errors import Finding, Place
from rlxdeploy.model.found import Found
from rlxdeploy.model.inventory import Inventory
from rlxdeploy.model.locate import KeyPath, Position
from rlxdeploy.model.survey import Hardware

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def spelled(path: KeyPath) -> str:
    """Return *path* as people write it: `node[2].addr`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if _BARE.fullmatch(step) else f'."{step}"'
    return text.removeprefix(".")


@dataclass(frozen=True, slots=True)
class Loaded:
    """An inventory and its file; *path* is absolute, *shown* is the file as the person named it.

    *places* holds every key that the file writes.  *found* are the nodes of `[discover]`, by their
    index: their keys stand where its keys do.  *told* is the hardware of nodes whose own workers
    told of it, by index: nobody has surveyed them.
    """

    path: PurePath
    shown: str
    inventory: Inventory
    places: Mapping[KeyPath, Position]
    notices: tuple[Finding, ...] = ()
    found: Mapping[int, Found] = field(default_factory=dict)
    told: Mapping[int, Hardware] = field(default_factory=dict)

    @property
    def job(self) -> str:
        """The job's name, written or taken from the path."""
        return self.inventory.job_name(self.path)

    def written(self, path: KeyPath) -> bool:
        """Return whether the file itself writes the key, rather than leaving it to its default."""
        return path in self.places

    def place_of(self, path: KeyPath) -> Place:
        """Return where *path* is written, or else the nearest table around it, or the file."""
        while path and path not in self.places:
            path = path[:-1]
        return Place(self.shown, *self.places.get(path, (0, 0)))

    def origin(self, path: KeyPath) -> str:
        """Return where the value of the key at *path* comes from: its line, or its default."""
        if self.written(path):
            return f"{self.place_of(path)}: {spelled(path)}"
        return f"the default of {spelled(path)}"

    def finding(self, path: KeyPath, message: str, remedy: str = "") -> Finding:
        """Return an error about the key at *path*."""
        return Finding(message, self.place_of(path), spelled(path), remedy)
