"""What forbids a plan: hosts that another deployment holds, or that nobody has asked."""

from collections.abc import Iterator, Mapping

from rlxdeploy.errors import CompileError, Finding, Severity
from rlxdeploy.model.plan import Site
from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.survey import Deployed, Survey
from rlxdeploy.plan.order import Order

_MARK = "/deployment.json"
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def refuse(resolution: Resolution, survey: Survey, order: Order) -> None:
    """Raise CompileError with every host of the group that may not be touched, and why."""
    findings = [*_foreign(resolution, survey, order), *_moved(resolution, survey)]
    findings += _unread(resolution, survey)
    findings += [
        Finding(
            f"{host} is in the group and was not surveyed: {survey.failed.get(host, 'unasked')}"
        )
        for host in resolution.hosts
        if host not in survey.hosts
    ]
    if findings:
        raise CompileError(findings)


def is_foreign(deployed: Deployed | None, order: Order) -> bool:
    """Tell whether another deployment id holds the job on a host."""
    return deployed is not None and deployed.deployment != order.deployment


def _foreign(resolution: Resolution, survey: Survey, order: Order) -> Iterator[Finding]:
    for host in resolution.hosts:
        facts = survey.hosts.get(host)
        deployed = facts.job.deployed if facts else None
        if deployed is None or order.adopt or not is_foreign(deployed, order):
            continue
        yield foreign(host, deployed, order.now)


def _unread(resolution: Resolution, survey: Survey) -> Iterator[Finding]:
    """Yield hosts where root has put the job and the login user cannot see what it is."""
    for host in resolution.hosts:
        facts = survey.hosts.get(host)
        for path, seen in facts.job.files.items() if facts else ():
            if path.endswith(_MARK) and not seen.digest and facts and facts.job.deployed is None:
                yield Finding(
                    f"{host}: {facts.platform.user} may not read {path}, which says what runs",
                    remedy="log in as who put it there; where sudo asks: --ask-become-pass",
                )


def foreign(host: str, deployed: Deployed, now: float) -> Finding:
    """Return the refusal to touch what another deployment has put on *host*."""
    when = age(now - deployed.applied_at)
    return Finding(
        f"{host}: the job {deployed.job} there belongs to {deployed.owner}, who applied"
        f" {deployed.inventory} from {deployed.controller} {when}",
        remedy="use another job name, or take it over with --adopt",
    )


def _moved(resolution: Resolution, survey: Survey) -> Iterator[Finding]:
    for host, placed in resolution.hosts.items():
        facts = survey.hosts.get(host)
        deployed = facts.job.deployed if facts else None
        if deployed is not None and deployed.launch != placed.launch:
            yield Finding(
                f"{host}: its ranks are started by {deployed.launch}, not by {placed.launch}",
                remedy="run `rlxdeploy destroy` before you change the launch",
            )


def lost_hosts(
    left: Mapping[str, Site], survey: Survey, order: Order
) -> Iterator[tuple[str, Finding]]:
    """Yield the recorded hosts that cannot be cleared, each with what to tell the person."""
    for name in left:
        facts = survey.hosts.get(name)
        if facts is None:
            why = survey.failed.get(name, "it was not asked")
            what = f"{name} left the group and cannot be cleared: {why}"
            remedy = "its ranks may still run there; apply again once it answers"
            yield name, Finding(what, remedy=remedy, severity=Severity.WARNING)
        elif is_foreign(facts.job.deployed, order):
            what = f"{name} left the group, and its job belongs to another deployment by now"
            yield name, Finding(what, severity=Severity.NOTICE)


def age(seconds: float) -> str:
    """Return `3 hours ago` in the biggest unit that fits."""
    whole = max(0, int(seconds))
    size, unit = next(pair for pair in _UNITS if whole >= pair[0] or pair[0] == 1)
    count = whole // size
    return f"{count} {unit}{'' if count == 1 else 's'} ago"
