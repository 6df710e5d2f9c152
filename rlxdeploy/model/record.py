"""What the controller remembers of a job beside its inventory; losing it loses only convenience."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlxdeploy.model.found import Found
from rlxdeploy.model.host import Host, Tree
from rlxdeploy.model.plan import RankRow

FORMAT_VERSION = 1

# As many as a host keeps to go back to, and what was tried in between.
_FORMER = 8


@dataclass(frozen=True, slots=True)
class HostRecord:
    """One host that an apply touched: how to reach it and where the files lie.

    *found* tells how it was found, None where it was written.
    """

    host: Host
    tree: Tree
    launch: str
    ranks: tuple[int, ...]
    found: Found | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """The last apply of one job from this inventory.

    *deployment* is the random id that the hosts' `deployment.json` carries too; *generation* is the
    highest that was ever applied, which a rollback leaves behind.  *former* has the ranks of the
    releases before, for whoever goes back to one.
    """

    deployment: str
    job: str
    release: str
    generation: int
    hosts: tuple[HostRecord, ...]
    ranks: tuple[RankRow, ...]
    former: Mapping[str, tuple[RankRow, ...]] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION

    def rows_of(self, release: str) -> tuple[RankRow, ...]:
        """Return the ranks as *release* had them, none where that is not known any more."""
        return self.ranks if release == self.release else self.former.get(release, ())

    def behind(self, release: str) -> Mapping[str, tuple[RankRow, ...]]:
        """Return what a record is to have as *former* once *release* stands."""
        others = {name: rows for name, rows in self.former.items() if name != self.release}
        every = {**others, self.release: self.ranks}
        every.pop(release, None)
        return dict([*every.items()][-_FORMER:])
