"""The deployer's one tree of errors: the class says whose fault it is, attributes carry evidence.

Nobody parses a message: the command line picks the exit code by class, and JSON output shows the
attributes.  One host's failure is a value (`model.outcome`), no exception that stops the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position in a file a person wrote; line and column count from 1 (0: the whole file)."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, with its place, the key it speaks of, and what to do about it."""

    message: str
    place: Place | None = None
    key: str = ""
    remedy: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        key = f"{self.key}: " if self.key else ""
        return f"{where}{key}{self.message}" + (f"; {self.remedy}" if self.remedy else "")


class RlxDeployError(Exception):
    """Base of every error the deployer raises on purpose; anything else is a bug of ours."""

    exit_code: ClassVar[int] = 1


class InventoryError(RlxDeployError):
    """What a person wrote is wrong; *findings* lists all of it, each with its place."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("\n".join(map(str, findings)))
        self.findings = tuple(findings)


class CompileError(InventoryError):
    """Inventory and survey together do not settle into a group; nothing was changed."""


class UsageError(RlxDeployError):
    """The command line asks for something that does not exist or contradicts itself."""

    exit_code = 64


class HostError(RlxDeployError):
    """One machine did not do as asked; the others may have."""

    def __init__(self, host: str, doing: str, why: str, remedy: str = "") -> None:
        super().__init__(f"{host}: {doing}: {why}" + (f" ({remedy})" if remedy else ""))
        self.host, self.doing, self.why, self.remedy = host, doing, why, remedy


class Unreachable(HostError):
    """No session could be opened; trying again later may help."""

    exit_code = 4


class Refused(HostError):
    """The host answered and said no; trying again will not help."""


class PasswordRefused(Refused):
    """sudo on the host did not take the password; nobody tries it there again."""


class Untrusted(Unreachable):
    """The host's key is unknown or has changed; nothing was sent to it."""


class Unsurveyed(Unreachable):
    """A survey learned nothing of the host, which so counts as not reached.

    *kind* is the class of the error that it was, by name.
    """

    def __init__(self, host: str, doing: str, why: str, remedy: str = "", *, kind: str) -> None:
        super().__init__(host, doing, why, remedy)
        self.kind = kind


class Locked(HostError):
    """Another apply holds the host's lock."""

    exit_code = 5


class Overtaken(Refused):
    """What stands on the host is not what the plan was made from; nothing was changed there."""

    exit_code = 6

    @property
    def moved(self) -> tuple[str, ...]:
        """What says so, as `Stale` has it."""
        return (f"{self.host}: {self.why}",)


class Stale(RlxDeployError):
    """The world has moved since the plan was made; *moved* says what."""

    exit_code = 6

    def __init__(self, moved: Sequence[str]) -> None:
        super().__init__("the saved plan is stale:\n" + "\n".join(f"  {line}" for line in moved))
        self.moved = tuple(moved)
