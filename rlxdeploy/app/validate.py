"""Reading inventories for every use case, and telling all that is to be said about them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlxdeploy.edge.inventory import missing_sources, read_inventory
from rlxdeploy.errors import Finding, InventoryError, Place, Severity
from rlxdeploy.model.checks import check
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.unsupported import unsupported, without_effect


@dataclass(frozen=True, slots=True)
class Report:
    """What there is to say about one file; *without_effect* is for who asks for more."""

    path: Path
    findings: tuple[Finding, ...]
    without_effect: tuple[Finding, ...] = ()

    @property
    def passed(self) -> bool:
        """True unless something in the file is an error."""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)


def validate(paths: Sequence[Path]) -> tuple[Report, ...]:
    """Report on each file; nothing is raised for what a person wrote."""
    return tuple(map(_report, paths))


def load(path: Path) -> Loaded:
    """Return a sound inventory with all that was noticed; keys not built yet are left in.

    Raises InventoryError with every finding if one of them is an error.
    """
    loaded = read_inventory(path)
    findings = check(loaded)
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise InventoryError((*loaded.notices, *findings))
    return replace(loaded, notices=(*loaded.notices, *findings))


def load_to_compile(path: Path) -> Loaded:
    """Return what `load` does; raises InventoryError also for each key that is not built yet."""
    loaded = load(path)
    if findings := unsupported(loaded):
        raise InventoryError(findings)
    return loaded


def _report(path: Path) -> Report:
    try:
        loaded = load(path)
    except InventoryError as error:
        return Report(path, error.findings)
    later = [replace(finding, severity=Severity.NOTICE) for finding in unsupported(loaded)]
    findings = sorted(
        (*loaded.notices, *missing_sources(loaded), *later),
        key=lambda finding: finding.place or Place(str(path)),
    )
    return Report(path, tuple(findings), without_effect(loaded))
