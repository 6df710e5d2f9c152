"""What one compile has to say, gathered so that a person reads all of it at once."""

from dataclasses import dataclass, field, replace

from rlxdeploy.errors import CompileError, Finding, Severity
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.locate import KeyPath


@dataclass(slots=True)
class Report:
    """Errors and notices of one `resolve`, each at the key it speaks of."""

    loaded: Loaded
    errors: list[Finding] = field(default_factory=list)
    notices: list[Finding] = field(default_factory=list)

    def error(self, path: KeyPath, message: str, remedy: str = "") -> None:
        """Add what stands in the way of a group."""
        self.errors.append(self.loaded.finding(path, message, remedy))

    def warning(self, path: KeyPath, message: str, remedy: str = "") -> None:
        """Add what will probably not do what was meant."""
        self._notice(path, message, remedy, Severity.WARNING)

    def notice(self, path: KeyPath, message: str, remedy: str = "") -> None:
        """Add what a person may want to know."""
        self._notice(path, message, remedy, Severity.NOTICE)

    def raise_errors(self) -> None:
        """Raise CompileError with every error so far, each once, if there is any."""
        if self.errors:
            raise CompileError(tuple(dict.fromkeys(self.errors)))

    def _notice(self, path: KeyPath, message: str, remedy: str, severity: Severity) -> None:
        finding = self.loaded.finding(path, message, remedy)
        self.notices.append(replace(finding, severity=severity))
