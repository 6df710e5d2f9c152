"""One host as the rules of a check-up see it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rlxdeploy.errors import Severity
from rlxdeploy.model.checkup import Ailment
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.survey import HostFacts, Platform
from rlxdeploy.resolve.entries import Entry


@dataclass(frozen=True, slots=True)
class Asked:
    """The controller's clock before and after the hosts were asked, in seconds."""

    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Patient:
    """A surveyed host with the *entries* written for it; none where only the record names it.

    *asked* is when, *python* the interpreter that the survey asked; *alone*: the job has no other
    host.
    """

    loaded: Loaded
    facts: HostFacts
    entries: tuple[Entry, ...]
    asked: Asked
    python: str
    alone: bool = False

    @property
    def platform(self) -> Platform:
        return self.facts.platform

    def error(self, check: str, what: str, remedy: str = "") -> Ailment:
        """Return what stands in the way of the job."""
        return Ailment(Severity.ERROR, self.facts.host.name, check, what, remedy)

    def warning(self, check: str, what: str, remedy: str = "") -> Ailment:
        """Return what will probably hurt."""
        return Ailment(Severity.WARNING, self.facts.host.name, check, what, remedy)

    def notice(self, check: str, what: str, remedy: str = "") -> Ailment:
        """Return what a person may want to know."""
        return Ailment(Severity.NOTICE, self.facts.host.name, check, what, remedy)


Rule = Callable[[Patient], Iterator[Ailment]]
