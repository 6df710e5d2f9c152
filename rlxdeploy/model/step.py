"""Deeds as data: a closed union of frozen steps; `str(step)` is what the dry run prints.

No step carries content: files are named by path and digest, and `edge/script` finds the bytes in
the RemoteFiles.  A step says what shall be so; none depends on the answer to an earlier one.
*kind* tells the steps apart in a saved plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Discriminator


@dataclass(frozen=True, slots=True)
class StoreFile:
    """Have the content-addressed file *digest* of *size* bytes in the store."""

    digest: str
    size: int
    kind: Literal["store"] = "store"

    def __str__(self) -> str:
        return f"store {self.digest[:12]} ({self.size} bytes)"


@dataclass(frozen=True, slots=True)
class ReleasedFile:
    """One file of a release: its path in the release's folder, content digest, size and mode."""

    path: str
    digest: str
    size: int
    mode: int


@dataclass(frozen=True, slots=True)
class StageRelease:
    """Have `releases/<release>` with exactly *files*; nothing that runs is touched."""

    release: str
    files: tuple[ReleasedFile, ...]
    kind: Literal["stage"] = "stage"

    def __str__(self) -> str:
        return f"stage release {self.release} ({len(self.files)} files)"


@dataclass(frozen=True, slots=True)
class StopRanks:
    """Stop the instances of *ranks*, waiting until they are gone; *disable* them at boot too."""

    ranks: tuple[int, ...]
    disable: bool = False
    kind: Literal["stop"] = "stop"

    def __str__(self) -> str:
        return f"stop {_ranks(self.ranks)}"


@dataclass(frozen=True, slots=True)
class SwitchRelease:
    """Point `current` at *release*."""

    release: str
    kind: Literal["switch"] = "switch"

    def __str__(self) -> str:
        return f"switch current to {self.release}"


@dataclass(frozen=True, slots=True)
class RestoreRelease:
    """Point `current` at *release*, with all that it had outside of its folder."""

    release: str
    kind: Literal["restore"] = "restore"

    def __str__(self) -> str:
        return f"restore release {self.release}"


@dataclass(frozen=True, slots=True)
class InstallFile:
    """Have the file *path* (a unit, a drop-in, a key) with this content; *digest* is "" for a key.

    It belongs to *owner*, or to whoever carries the step out.
    """

    path: str
    digest: str
    size: int
    mode: int
    owner: str = ""
    kind: Literal["install"] = "install"

    def __str__(self) -> str:
        return f"install {self.path}"


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """Have no file at *path*."""

    path: str
    kind: Literal["remove"] = "remove"

    def __str__(self) -> str:
        return f"remove {self.path}"


@dataclass(frozen=True, slots=True)
class ReloadUnits:
    """Have the service manager read the unit files again."""

    kind: Literal["reload"] = "reload"

    def __str__(self) -> str:
        return "reload units"


@dataclass(frozen=True, slots=True)
class StartRanks:
    """Start the instances of *ranks* of *release* without waiting; *boot*: also at every boot.

    *supervisor* is the start of the argument vector of a supervisor, empty where units start them.
    """

    ranks: tuple[int, ...]
    boot: bool
    release: str
    supervisor: tuple[str, ...] = ()
    kind: Literal["start"] = "start"

    def __str__(self) -> str:
        return f"start {_ranks(self.ranks)}"


@dataclass(frozen=True, slots=True)
class MarkDeployment:
    """Have `deployment.json` with these fields and a note of all files; the host adds nothing."""

    fields: Mapping[str, object]
    kind: Literal["mark"] = "mark"

    def __str__(self) -> str:
        return "write deployment.json"


@dataclass(frozen=True, slots=True)
class PruneReleases:
    """Keep the *keep* newest releases, and drop stored files that no job's release names."""

    keep: int
    kind: Literal["prune"] = "prune"

    def __str__(self) -> str:
        return f"keep {self.keep} releases"


@dataclass(frozen=True, slots=True)
class RemoveJob:
    """Have nothing of the job on the host: instances stopped before, folders, units and links."""

    kind: Literal["remove-job"] = "remove-job"

    def __str__(self) -> str:
        return "remove the job's files"


Step = Annotated[
    StoreFile
    | StageRelease
    | StopRanks
    | SwitchRelease
    | RestoreRelease
    | InstallFile
    | RemoveFile
    | ReloadUnits
    | StartRanks
    | MarkDeployment
    | PruneReleases
    | RemoveJob,
    Discriminator("kind"),
]


def _ranks(ranks: tuple[int, ...]) -> str:
    word = "rank" if len(ranks) == 1 else "ranks"
    return f"{word} {', '.join(map(str, ranks))}"
