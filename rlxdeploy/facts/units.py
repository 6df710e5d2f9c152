"""The job's instances on a host: systemd's units, or supervisors that run without it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rlxdeploy.facts import rows, supervisors, views
from rlxdeploy.facts.places import (
    NOW,
    SYSTEM_RUN,
    SYSTEM_UNITS,
    USER_MANAGER,
    USER_PLACES,
    USER_UNITS,
    tagged,
    with_privilege,
)
from rlxdeploy.facts.question import Answers, Question, quoted, whole
from rlxdeploy.facts.supervisors import STATES, rank_of
from rlxdeploy.model.survey import RankSeen
from rlxdeploy.model.targets import Enquiry
from rlxdeploy.model.vocabulary import Launch

SYSTEM, USER = "system units", "user units"

_SHOWN = (
    "Id,ActiveState,MainPID,NRestarts,StatusText,ExecMainCode,ExecMainStatus,UnitFileState,"
    "ExecMainStartTimestampMonotonic,SubState"
)

# The words are the unit pattern's stem and the unit folder.
_ENABLED = """\
for f in "$2"/*.wants/"$1"*.service; do [ -L "$f" ] && echo "enabled|$f"; done
"""
_UNITS = """\
echo "clock|$now"
read -r up rest </proc/uptime && echo "uptime|$up"
told=$(systemctl $manager show -p {shown} "$1*") && echo "manager|there" &&
while IFS= read -r line; do echo "unit|$line"; done <<END
$told
END
"""

# sshd's own session may be all that keeps the manager alive: lingering lets it outlive that.
_LINGERS = """\
for f in /var/lib/systemd/linger/*; do
  [ ! -e "$f" ] || { [ ! -e "/var/lib/systemd/linger/$(id -un)" ] || echo "lingers|"; break; }
done
"""

# Root starts things by the system's manager; its own is asked where it is meant, or has units of
# ours.  The word is the unit pattern's stem.
_SPARE_ROOT = """\
for f in "{folder}/$1"*; do [ "$uid" != 0 ] || [ -e "$f" ] || [ -L "$f" ] || exit 0; done
"""

# Each launch's own question first: without its answer it is not known what runs.  Under the user's
# units the nodes' own files lie where a supervisor's ranks have theirs.
_OF_LAUNCH = {
    Launch.SYSTEMD: (SYSTEM, views.SYSTEM),
    Launch.SYSTEMD_USER: (USER, supervisors.NAME, views.USER),
    Launch.PROCESS: (supervisors.NAME, views.USER),
}
_REQUIRED = (supervisors.NAME, SYSTEM)

# Where two launches know a rank, what runs goes before what failed or lies idle.
_LIVELY = ("active", "reloading", "activating", "deactivating", "exited", "failed", "inactive")


def questions(enquiry: Enquiry, launch: Launch | None = None) -> tuple[Question, ...]:
    """Return what to ask about the job's instances under each launch, or under *launch* alone."""
    stem, run = f"rlx-{enquiry.job}@", f"{SYSTEM_RUN}/{enquiry.job}"
    units, enabled = NOW + _UNITS.format(shown=_SHOWN), _ENABLED
    booted = "[ -d /run/systemd/system ] || exit 0\n"
    system = (
        f"{booted}manager=--system\nset -- {quoted([stem, SYSTEM_UNITS])}\n{enabled}{units}"
        f"[ -d {quoted([run])} ] || exit 0\n{with_privilege(STATES, run, sudo=enquiry.sudo)}"
    )
    meant = Launch.SYSTEMD_USER in (launch, enquiry.launch)
    spare_root = "" if meant else _SPARE_ROOT.format(folder=USER_UNITS)
    user = (
        f'{booted}{USER_PLACES}manager=--user\nset -- {quoted([stem])} "{USER_UNITS}"\n'
        f"{spare_root}{enabled}unset DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR\n"
        f"{USER_MANAGER}{_LINGERS}{units}"
    )
    own = (
        Question(SYSTEM, system, row=rows.SYSTEM_MANAGER),
        Question(USER, user, row=rows.USER_MANAGER),
        supervisors.question(enquiry),
    )
    every = (*own, *views.questions(enquiry))
    return tuple(one for one in every if launch is None or one.name in _OF_LAUNCH[launch])


def parse(answers: Answers, launch: Launch | None = None) -> tuple[RankSeen, ...]:
    """Read the instances of every launch by rank, the liveliest where there are two.

    *launch* is the one that `questions` were asked about.  Raises Unanswered where it is not known
    what runs.  A user manager that hangs runs nothing.
    """
    wanted = _REQUIRED if launch is None else _OF_LAUNCH[launch][:1]
    supervised, system, _ = (
        answers.required(name) if name in wanted else answers.text(name)
        for name in (supervisors.NAME, SYSTEM, USER)
    )
    states = dict(supervisors.states(system))
    states |= supervisors.states(supervised)
    nodes = views.parse(answers)
    ranks: dict[int, RankSeen] = {}
    for seen in (
        *_units(system, states),
        *_units(answers.text(USER), states),
        *supervisors.supervised(supervised, states),
    ):
        known = ranks.get(seen.rank)
        if known is None or _LIVELY.index(seen.active) < _LIVELY.index(known.active):
            ranks[seen.rank] = replace(seen, nodes=nodes.get(seen.pid))
    return tuple(ranks[rank] for rank in sorted(ranks))


def _units(text: str, states: Mapping[int, Mapping[str, object]]) -> Iterator[RankSeen]:
    said = list(tagged(text))
    booted = _booted(dict(said))
    ranked = (rank_of(path) for tag, path in said if tag == "enabled")
    enabled = {rank for rank in ranked if rank is not None}
    shown: set[int] = set()
    for block in "\n".join(line for tag, line in said if tag == "unit").split("\n\n"):
        unit = dict(line.partition("=")[::2] for line in block.split("\n"))
        if (rank := rank_of(unit.get("Id", ""))) is not None:
            shown.add(rank)
            yield _unit(rank, unit, booted, states.get(rank, {}), enabled=rank in enabled)
    yield from (RankSeen(rank, "inactive", enabled=True) for rank in enabled - shown)


def _unit(
    rank: int,
    unit: Mapping[str, str],
    booted: float,
    node: Mapping[str, object],
    *,
    enabled: bool,
) -> RankSeen:
    active = unit.get("ActiveState", "")
    active = active if active in _LIVELY else "inactive"
    # Its process has ended well; the unit stays active so that its exit status can be seen.
    active = "exited" if unit.get("SubState") == "exited" else active
    started = whole(unit.get("ExecMainStartTimestampMonotonic", ""))
    return RankSeen(
        rank=rank,
        active=active,
        ready=active == "active",
        pid=whole(unit.get("MainPID", "")),
        restarts=whole(unit.get("NRestarts", "")),
        since=round(booted + started / 1e6, 3) if started else 0.0,
        status=unit.get("StatusText", ""),
        exit_status=_exit_status(unit),
        enabled=enabled or unit.get("UnitFileState") == "enabled",
        node=node,
    )


def _booted(said: Mapping[str, str]) -> float:
    """Return the wall clock of the boot; systemd's monotonic times count from there."""
    try:
        return float(said["clock"]) - float(said["uptime"])
    except (KeyError, ValueError):
        return 0.0


def _exit_status(unit: Mapping[str, str]) -> int | None:
    """Return how the main process ended, as a shell says it; systemd gives waitid's si_code."""
    status = whole(unit.get("ExecMainStatus", ""))
    match unit.get("ExecMainCode"):
        case "1":
            return status
        case "2" | "3":
            return 128 + status
        case _:
            return None
