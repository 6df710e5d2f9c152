"""The steps from the hosts as surveyed to the hosts as rendered, as data a person can read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rlxdeploy.errors import Finding
from rlxdeploy.model.host import Host, Tree
from rlxdeploy.model.scope import ALL, Scope
from rlxdeploy.model.step import Step

FORMAT_VERSION = 1


class Change(StrEnum):
    """What becomes of a file."""

    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that will differ; *diff* is unified text, with secrets as keyed digests."""

    path: str
    change: Change
    source: str = ""
    before: str = ""
    after: str = ""
    size: int = 0
    diff: str = ""


@dataclass(frozen=True, slots=True)
class UnitAction:
    """What happens to one rank's instance (start, stop, restart), and why."""

    rank: int
    action: str
    why: str


@dataclass(frozen=True, slots=True)
class Drift:
    """What is not as the last apply left it: *what* became of *path* on *host*, and what *then*."""

    host: str
    path: str
    what: str
    then: str

    def __str__(self) -> str:
        return f"{self.host}: {self.path} {self.what}; {self.then}"


@dataclass(frozen=True, slots=True)
class Site:
    """Where the job lies on one host, and what starts it there."""

    host: Host
    tree: Tree
    launch: str


@dataclass(frozen=True, slots=True)
class WayBack:
    """How a host goes back by itself *after_s* seconds after GO, unless it is told to stay.

    It stays too where all *ranks* have joined since GO under *plan*, the new RLX_PLAN ("" where
    any will do); *notify* tells that a rank itself says so.  Without ranks it cannot know whether
    the others stay: it goes back where what ran there waits for its group (*notify*), and keeps
    still where that would run alone.  *release* is what it goes back to, ""
    where nothing was deployed: then the job is removed.  *again* are the ranks that ran and are
    started again, with *boot* at every boot.  *stands* is the release that the host was seen with,
    "" for none: with another one it refuses (None: nobody has looked).
    """

    after_s: int
    ranks: tuple[int, ...]
    plan: str
    notify: bool
    release: str = ""
    again: tuple[int, ...] = ()
    boot: bool = False
    stands: str | None = None

    def __str__(self) -> str:
        return f"go back to release {self.release}" if self.release else "remove the job"


@dataclass(frozen=True, slots=True)
class HostPlan:
    """One host's part: *stage* touches nothing that runs, *go* does.

    *confirm* comes once the group has formed; *back* is the way back until then.  With nothing of
    these there is no change.
    """

    host: Host
    tree: Tree
    launch: str
    changes: tuple[FileChange, ...] = ()
    actions: tuple[UnitAction, ...] = ()
    stage: tuple[Step, ...] = ()
    go: tuple[Step, ...] = ()
    confirm: tuple[Step, ...] = ()
    back: WayBack | None = None

    @property
    def empty(self) -> bool:
        return not (self.stage or self.go or self.confirm or self.back)


@dataclass(frozen=True, slots=True)
class RankRow:
    """One line of the rank table: what the plan gives this rank.

    *layers* is its part of the model, half open as in LAYERS, "" without one.
    """

    rank: int
    node: str
    host: str
    device: str
    address: str
    launch: str
    action: str
    managed: bool = True
    layers: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a plan was asked for, so that it can be made again: paths are absolute, or empty.

    *max_fail* hosts may fail before any is told GO.
    """

    inventory: str = ""
    templates: str = ""
    skip_unreachable: bool = False
    promote: tuple[str, ...] = ()
    adopt: bool = False
    scope: Scope = ALL
    max_fail: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What `plan` prints and `apply` carries out.

    *release* is the id every host shows afterwards, *plan* the RLX_PLAN, *deployment* the random
    id that marks the job as this inventory's.  *join* tells how a rank is known to be up: notify
    or exec.  *absent* names the nodes that *world* does not count, since they did not answer.
    *secrets* has what stands for the value of each secret, by where it comes from, and *sources*
    for each key of the inventory and each file of the controller, by its name.  *preflight*
    tells that links between the ranks are tried before anything is changed.  *unasked* are hosts
    that did not answer and stay as they are, known from the last apply: no group is waited for.
    """

    job: str
    world: int
    topology: str
    release: str
    plan: str
    generation: int
    deployment: str
    join: str
    join_timeout: float
    hosts: Mapping[str, HostPlan]
    ranks: tuple[RankRow, ...]
    why: tuple[str, ...] = ()
    notices: tuple[Finding, ...] = ()
    explained: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    drift: tuple[Drift, ...] = ()
    asked: Asked = field(default_factory=Asked)
    secrets: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    preflight: bool = False
    unasked: tuple[str, ...] = ()
    format_version: int = FORMAT_VERSION

    @property
    def empty(self) -> bool:
        """Tell whether the hosts are already as they should be."""
        return all(part.empty for part in self.hosts.values())
