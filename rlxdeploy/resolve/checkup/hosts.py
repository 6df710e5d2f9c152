"""The system of a host: what starts ranks there, its Python, its shell, its clock."""

from collections.abc import Iterator

from rlxdeploy.errors import Finding, Severity
from rlxdeploy.facts.platform import MIN_SYSTEMD
from rlxdeploy.facts.question import whole
from rlxdeploy.model.checkup import Ailment
from rlxdeploy.model.vocabulary import Become, Launch
from rlxdeploy.resolve.checkup.patient import Patient
from rlxdeploy.resolve.devices import choice
from rlxdeploy.resolve.entries import wanted_python
from rlxdeploy.resolve.launch import check_groups
from rlxdeploy.resolve.placing import placed
from rlxdeploy.resolve.programs import argv
from rlxdeploy.resolve.report import Report

# The host tells whole seconds, and nobody sees a smaller difference in a log.
_CLOCK_S = 2.0
_MINUTE, _HOUR, _DAY = 60, 3600, 86400

# The word for what was looked at, by the key that the plan's own check speaks of.
_CHECKS = {
    "job.launch": "launch",
    "job.user": "account",
    "job.command": "command",
    "ssh.become": "sudo",
    "": "survey",
}


def plan_ability(one: Patient) -> Iterator[Ailment]:
    """Say what a plan says of the host's launch, account, Python, command and answers."""
    if not one.entries:
        return
    report = Report(one.loaded)
    wanted = [(entry, wanted_python(one.loaded, entry, one.python)) for entry in one.entries]
    here = placed(one.facts, wanted, one.python, report)
    argv(here.python, here.workdir, one.facts, report)
    labels = {choice(entry.node.device, one.facts.hardware).devices[0] for entry in one.entries}
    check_groups(one.facts, here.user, labels, report)
    for finding in dict.fromkeys((*report.errors, *report.notices)):
        yield _heard(one, finding)


def _heard(one: Patient, finding: Finding) -> Ailment:
    check = _CHECKS.get(finding.key, "python")
    return Ailment(finding.severity, one.facts.host.name, check, finding.message, finding.remedy)


def best_launch(one: Patient) -> Iterator[Ailment]:
    """Say why the system's manager does not start the ranks, where nobody wrote that it is not."""
    wanted, works = one.loaded.inventory.job.launch, one.platform.launches
    if wanted is Launch.PROCESS or Launch.SYSTEMD.value in works or not one.entries:
        return
    for launches, check, what, remedy in _hindrances(one):
        if wanted is Launch.AUTO:
            mortal = works[:1] != (Launch.SYSTEMD_USER.value,)
            severity = Severity.WARNING if mortal else Severity.NOTICE
        elif wanted in launches:
            severity = Severity.ERROR
        else:
            continue
        yield Ailment(severity, one.facts.host.name, check, what, remedy)


def _hindrances(one: Patient) -> Iterator[tuple[tuple[Launch, ...], str, str, str]]:
    """Yield the launches that something hinders, what was looked at, what is so, a remedy."""
    platform, become = one.platform, one.loaded.inventory.ssh.become
    both = (Launch.SYSTEMD, Launch.SYSTEMD_USER)
    mortal = "under process launch nothing starts ranks after a reboot"
    if platform.init != "systemd":
        yield both, "systemd", f"its init is {platform.init or 'unknown'}, no systemd", mortal
    elif whole(platform.systemd) < MIN_SYSTEMD:
        what = f"systemd {platform.systemd or 'of no known version'} is older than {MIN_SYSTEMD}"
        yield both, "systemd", f"{what}, and lacks what our units need", f"upgrade it; {mortal}"
    elif platform.uid != 0 and not platform.sudo and become is Become.AUTO:
        what = f"sudo asks {platform.user} for a password, or refuses"
        yield both[:1], "sudo", what, "--ask-become-pass, or NOPASSWD in sudoers"


def noise(one: Patient) -> Iterator[Ailment]:
    """Warn of a shell that prints before the command: other tools take that for the answer."""
    if one.platform.noise:
        what = f"the shell profile of {one.platform.user} prints at each command: "
        remedy = "print only where `[ -t 1 ]` holds; scp, rsync and scripts stumble over it"
        yield one.warning("profile", what + repr(one.platform.noise), remedy)


def clock(one: Patient) -> Iterator[Ailment]:
    """Warn of a clock that was outside the time in which it was asked."""
    told = one.platform.clock
    if not told:
        return
    # The host cuts the fraction of its second off.
    early, late = one.asked.began - 1 - told, told - one.asked.ended
    if max(early, late) > _CLOCK_S:
        way = "ahead of" if late > early else "behind"
        off = abs(told - (one.asked.began + one.asked.ended) / 2)
        what = f"its clock is {_span(off)} {way} the controller's"
        remedy = "let a time service set it: timedatectl set-ntp true"
        yield one.warning("clock", what, remedy)


def _span(seconds: float) -> str:
    for size, word in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if round(seconds / size, 1) >= 1:
            return f"{seconds / size:.1f} {word}"
    return f"{seconds:.0f} s"
