"""Why a host has not answered a survey: an error as a value, saved with the survey."""

from dataclasses import dataclass
from typing import Self

from rlxdeploy.errors import HostError, Unreachable, Unsurveyed, Untrusted

_AS_RAISED = {one.__name__: one for one in (Unreachable, Untrusted)}


@dataclass(frozen=True, slots=True)
class Silence:
    """*kind* is the class of the error by name, *remedy* what to do, "" where nobody knows."""

    kind: str
    why: str
    remedy: str = ""

    @classmethod
    def of(cls, error: HostError) -> Self:
        """Return what *error* was, whatever was being done when it came."""
        trust = "not trusted: " if isinstance(error, Untrusted) else ""
        return cls(type(error).__name__, f"{trust}{error.doing}: {error.why}", error.remedy)

    def __str__(self) -> str:
        return self.why + (f" ({self.remedy})" if self.remedy else "")

    def error(self, host: str, doing: str, more: str = "") -> Unreachable:
        """Return it as the error of *host*; *more* is another thing to do about it."""
        remedy = "; ".join(filter(None, (self.remedy, more)))
        if as_raised := _AS_RAISED.get(self.kind):
            return as_raised(host, doing, self.why, remedy)
        return Unsurveyed(host, doing, self.why, remedy, kind=self.kind)
