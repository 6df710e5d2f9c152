"""What starts the ranks on a host, as whom, and where their files lie."""

from dataclasses import dataclass

from rlxdeploy.facts.places import SYSTEM_DATA, SYSTEM_RUN, SYSTEM_UNITS
from rlxdeploy.model.host import Tree
from rlxdeploy.model.survey import HostFacts, Platform
from rlxdeploy.model.vocabulary import Become, Launch, UserManager
from rlxdeploy.resolve.report import Report

_NEEDS = "systemd 245 with root or sudo, a user manager that lingers, or python3"

# Devices that Linux opens to these groups; NVIDIA's driver opens its own to everybody.
_GROUP_ONLY = frozenset({"rocm", "vulkan", "oneapi", "gpu"})
_GPU_GROUPS = frozenset({"video", "render"})

_USER_UNITS = ".config/systemd/user"


@dataclass(frozen=True, slots=True)
class Started:
    """The launch of one host, the account of its ranks, and who reads their environment."""

    launch: Launch
    user: str
    owner: str
    why: str
    why_user: str


def choose_launch(facts: HostFacts, report: Report) -> Started:
    """Return what starts the ranks: as written, or the first that works there.

    What does not work on the host is an error in *report*.
    """
    job, platform, host = report.loaded.inventory.job, facts.platform, facts.host.name
    works = [Launch(word) for word in platform.launches]
    # Only the system's manager starts a rank as somebody else.
    fit = [one for one in works if one is Launch.SYSTEMD or job.user in (None, platform.user)]
    launch = job.launch
    if launch is Launch.AUTO and fit:
        launch = fit[0]
        why = f"auto: the first that works on {host} (there work {', '.join(works)})"
        _tell_of_lingering(launch, facts, report)
    else:
        why = report.loaded.origin(("job", "launch"))
    barred = [one for one in works if launch in (one, Launch.AUTO) and one not in fit]
    if barred:
        what = f"on {host}, {', '.join(barred)} starts ranks as {platform.user} only"
        report.error(("job", "user"), what, "leave user unwritten, or use systemd")
    elif launch not in works:
        can = f"there work {', '.join(works)}" if works else f"it has none of {_NEEDS}"
        remedy = _linger(platform) if launch is Launch.SYSTEMD_USER else ""
        what = f"{launch} does not start a rank on {host}: {can}"
        report.error(("job", "launch"), what, remedy)
    _check_account(facts, report)
    _check_sudo(facts, report)
    why_user = report.loaded.origin(("job", "user")) if job.user else "the login user"
    return _started(launch, job.user, platform, (why, why_user))


def tree(job: str, launch: Launch, platform: Platform) -> Tree:
    """Return where the job's files lie on a host."""
    if launch is Launch.SYSTEMD:
        return Tree(job, SYSTEM_DATA, SYSTEM_RUN, SYSTEM_UNITS)
    data = f"{platform.data_home}/rlx"
    run = f"{platform.runtime_dir}/rlx" if platform.runtime_dir else f"{data}/{job}/run"
    units = f"{platform.home}/{_USER_UNITS}" if launch is Launch.SYSTEMD_USER else ""
    return Tree(job, data, run, units)


def _tell_of_lingering(launch: Launch, facts: HostFacts, report: Report) -> None:
    """Say what stands in the way of a launch that would have come before the one taken."""
    if launch is Launch.PROCESS and (remedy := _linger(facts.platform)):
        what = f"on {facts.host.name} process launch is taken"
        report.notice(("job", "launch"), what, remedy)


def _linger(platform: Platform) -> str:
    """Return how the user's manager would outlive its sessions, "" where that is not what lacks."""
    if platform.user_manager != UserManager.IN_SESSIONS:
        return ""
    what = f"systemd-user would end {platform.user}'s ranks with its last session"
    return f"{what}: `loginctl enable-linger {platform.user}` lets them live on"


def _check_account(facts: HostFacts, report: Report) -> None:
    user = report.loaded.inventory.job.user
    if user and facts.platform.job_groups is None:
        report.error(("job", "user"), f"{facts.host.name} has no account {user!r}")


def _check_sudo(facts: HostFacts, report: Report) -> None:
    """Where sudo is demanded it has to work: no other launch is taken in silence."""
    platform = facts.platform
    demanded = report.loaded.inventory.ssh.become is Become.SUDO
    if demanded and platform.uid != 0 and not platform.sudo:
        what = f"sudo -n does not make {platform.user} root on {facts.host.name}"
        remedy = "give the password with --ask-become-pass, or allow it NOPASSWD in sudoers"
        report.error(("ssh", "become"), what, remedy)


def _started(launch: Launch, user: str | None, platform: Platform, why: tuple[str, str]) -> Started:
    return Started(
        launch=launch,
        user=user or platform.user,
        owner="root" if launch is Launch.SYSTEMD else platform.user,
        why=why[0],
        why_user=why[1],
    )


def check_groups(facts: HostFacts, user: str, labels: set[str], report: Report) -> None:
    """Warn where the account of the ranks cannot open the GPUs meant for them."""
    platform = facts.platform
    groups = platform.groups if user == platform.user else platform.job_groups or ()
    guarded = sorted(labels & _GROUP_ONLY)
    if guarded and user != "root" and platform.os == "linux" and not _GPU_GROUPS & {*groups}:
        what = f"{user} on {facts.host.name} is in neither video nor render"
        remedy = f"{', '.join(guarded)} may be closed to it: usermod -aG video,render {user}"
        report.warning(("job", "user"), what, remedy)
