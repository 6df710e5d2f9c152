"""How the job is laid out and started on each host."""

from collections.abc import Mapping

from rlxdeploy.facts.platform import MIN_SYSTEMD
from rlxdeploy.facts.question import whole
from rlxdeploy.model.host import Tree
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.resolution import Placed
from rlxdeploy.model.survey import HostFacts, Survey
from rlxdeploy.model.vocabulary import Hardening, Launch
from rlxdeploy.resolve.controller import Controller
from rlxdeploy.resolve.entries import Entry, Wanted, wanted_python
from rlxdeploy.resolve.group import Group
from rlxdeploy.resolve.launch import choose_launch, tree
from rlxdeploy.resolve.programs import check_python, python_path
from rlxdeploy.resolve.report import Report
from rlxdeploy.resolve.targets import asked_pythons


def place(
    members: Group, survey: Survey, controller: Controller, report: Report
) -> Mapping[str, Placed]:
    """Return the layout of each host that gets files, in the order of the inventory."""
    found: dict[str, list[Entry]] = {}
    entries = {stand.entry.index: stand.entry for stand in members.stands if stand.facts}
    entries |= {entry.index: entry for entry in members.holders}
    for _, entry in sorted(entries.items()):
        host = members.merged.get(entry.host.name, entry.host.name)
        found.setdefault(host, []).append(entry)
    for other, host in members.merged.items():
        report.notice((), f"{other} is {host} under another name: one machine, planned once")
    asked = asked_pythons(report.loaded, controller.interpreter)
    places = {
        host: placed(
            survey.hosts[host],
            [(one, wanted_python(report.loaded, one, controller.interpreter)) for one in few],
            asked[host],
            report,
        )
        for host, few in found.items()
    }
    _tell_of_all(places, report)
    _tell_of_old_systemd(places, survey, report)
    return places


def _tell_of_all(placed: Mapping[str, Placed], report: Report) -> None:
    """Say once for all hosts what would be tiring to read for each."""
    mortal = [name for name, one in placed.items() if one.launch == Launch.PROCESS]
    if mortal:
        what = f"process launch does not survive a reboot (on {', '.join(mortal)})"
        report.notice(("job", "launch"), what)
    job = report.loaded.inventory.job
    key = ("job", "hardening")
    bare = [name for name, one in placed.items() if one.launch != Launch.SYSTEMD]
    if bare and report.loaded.written(key) and job.hardening is not Hardening.OFF:
        what = f"only the system's manager can apply all of it (not so on {', '.join(bare)})"
        report.warning(key, what)
    rooted = [name for name, one in placed.items() if one.user == "root"]
    if rooted and job.user is None:
        what = f"the ranks run as root (on {', '.join(rooted)})"
        report.warning(("job", "user"), what, "write user, or log in as somebody else")


def _tell_of_old_systemd(placed: Mapping[str, Placed], survey: Survey, report: Report) -> None:
    """Say where auto would have taken systemd, had it been younger."""
    if report.loaded.inventory.job.launch is not Launch.AUTO:
        return
    for name, one in placed.items():
        platform = survey.hosts[name].platform
        old = platform.init == "systemd" and whole(platform.systemd) < MIN_SYSTEMD
        if old and one.launch == Launch.PROCESS:
            what = f"systemd {platform.systemd or 'of no known version'} on {name} is older than"
            remedy = "upgrade it; until then process launch is taken"
            report.notice(("job", "launch"), f"{what} {MIN_SYSTEMD}", remedy)


def placed(
    facts: HostFacts, wanted: list[tuple[Entry, Wanted]], asked: str, report: Report
) -> Placed:
    """Return the layout of one host; *asked* is the interpreter that its survey asked.

    What the host cannot do of that is an error in *report*.
    """
    loaded = report.loaded
    started = choose_launch(facts, report)
    here = tree(loaded.job, started.launch, facts.platform)
    check_python(wanted, asked, started.launch, facts, report)
    _tell(facts, here, report)
    return Placed(
        host=facts.host,
        tree=here,
        launch=started.launch.value,
        user=started.user,
        owner=started.owner,
        workdir=loaded.inventory.job.workdir or here.current,
        python=_python(wanted, started.launch, facts, report),
        why={
            "launch": started.why,
            "user": started.why_user,
            "owner": f"whoever reads environment files under {started.launch}",
            "home": f"where {started.launch} keeps a job's files",
            "workdir": _why_workdir(loaded),
            "python": wanted[0][1].why,
        },
    )


def _why_workdir(loaded: Loaded) -> str:
    key = ("job", "workdir")
    return loaded.origin(key) + ("" if loaded.written(key) else ": the release's folder")


def _python(
    wanted: list[tuple[Entry, Wanted]], launch: Launch, facts: HostFacts, report: Report
) -> str:
    """Return the host's interpreter: what the supervisor runs with under process launch."""
    if launch is Launch.PROCESS or report.loaded.inventory.job.is_builtin:
        return python_path(wanted[0][1], facts, report)
    return facts.platform.python


def _tell(facts: HostFacts, here: Tree, report: Report) -> None:
    host = facts.host.name
    for question in facts.unanswered:
        report.warning((), f"{host} did not say in time: {question}")
    if ":" in here.data:
        what = f"{here.data} on {host} holds a colon, which PYTHONPATH cannot carry"
        report.error((), what, "use another XDG_DATA_HOME")
