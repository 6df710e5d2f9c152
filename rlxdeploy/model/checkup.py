"""What a check-up of a job's hosts finds, and what to do about it."""

from dataclasses import dataclass

from rlxdeploy.errors import Severity


@dataclass(frozen=True, slots=True)
class Ailment:
    """One thing that is, or may become, wrong on *host* ("" where no single one is at fault).

    *check* is the one word for what was looked at; *remedy* may be empty.
    """

    severity: Severity
    host: str
    check: str
    what: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Checkup:
    """The hosts that were asked, and all that was found, the worst first."""

    job: str
    hosts: tuple[str, ...]
    ailments: tuple[Ailment, ...]

    def count(self, severity: Severity) -> int:
        """Return how many findings are of *severity*."""
        return sum(one.severity is severity for one in self.ailments)

    @property
    def sound(self) -> bool:
        """Tell whether nothing is worse than a warning."""
        return not self.count(Severity.ERROR)
