"""What the controller remembers of a job beside its inventory; losing it loses only convenience."""

from dataclasses import dataclass

from rlxdeploy.model.found import Found
from rlxdeploy.model.host import Host, Tree
from rlxdeploy.model.plan import RankRow

FORMAT_VERSION = 1


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
    highest that was ever applied, which a rollback leaves behind.
    """

    deployment: str
    job: str
    release: str
    generation: int
    hosts: tuple[HostRecord, ...]
    ranks: tuple[RankRow, ...]
    format_version: int = FORMAT_VERSION
