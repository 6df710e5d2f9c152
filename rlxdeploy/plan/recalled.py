"""Hosts that did not answer and are not to change: known from the last apply, and left alone."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from rlxdeploy.errors import Finding, Severity
from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.survey import Survey

_NEEDED = "it is not meant, but the whole group starts anew, so it has to answer"


def without(resolution: Resolution, hosts: Collection[str]) -> Resolution:
    """Return *resolution* as far as it is of other hosts than these; all seats stay."""
    if not hosts:
        return resolution
    others = {name: one for name, one in resolution.hosts.items() if name not in hosts}
    return replace(resolution, hosts=others)


def refuse_recalled(survey: Survey) -> None:
    """Raise an ExceptionGroup of Unreachable where a host is recalled: all have to change."""
    if silent := survey.recalled:
        errors = [survey.error_of(name, _NEEDED) for name in silent]
        raise ExceptionGroup(f"{len(silent)} of {len(survey.hosts)} hosts failed", errors)


def recalled(survey: Survey) -> Iterator[Finding]:
    """Yield what to say of each host that is only recalled."""
    for name in survey.recalled:
        what = f"{name} did not answer ({survey.failed.get(name, 'unasked')}); it is taken to be"
        remedy = "no group is waited for; apply again once it answers"
        yield Finding(f"{what} as at the last apply", remedy=remedy, severity=Severity.WARNING)
