"""The job's instances on a host: systemd's units, or supervisors that run without it.

A supervisor writes `<rank>.supervisor`, the built-in node `<rank>.state`; both are one JSON object.
A supervisor's word counts only while the process that gave it is there: its pid and start time.
"""

import json
import re
from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

from rlxdeploy.facts.places import (
    SYSTEM_RUN,
    SYSTEM_UNITS,
    USER_DATA,
    USER_PLACES,
    USER_UNITS,
    tagged,
    with_privilege,
)
from rlxdeploy.facts.question import Answers, Question, quoted, whole
from rlxdeploy.model.survey import RankSeen
from rlxdeploy.model.targets import Enquiry

SYSTEM, USER, PROCESSES = "system units", "user units", "supervisors"

_SHOWN = (
    "Id,ActiveState,MainPID,NRestarts,StatusText,ExecMainCode,ExecMainStatus,UnitFileState,"
    "ExecMainStartTimestampMonotonic"
)

# The words are the unit pattern's stem and the unit folder.
_UNITS = """\
echo "clock|$(date +%s)"
read -r up rest </proc/uptime && echo "uptime|$up"
systemctl $manager show -p {shown} "$1*" | sed 's/^/unit|/'
for f in "$2"/*.wants/"$1"*.service; do [ -L "$f" ] && echo "enabled|$f"; done
"""

# The words are the folders in which instances say how they are.
_STATES = """\
for folder; do
  for f in "$folder"/*.state; do
    [ -f "$f" ] && echo "state|$f" && sed 's/^/json|/' "$f" && echo
  done
done
"""

_SUPERVISORS = """\
for f in "$data_home/rlx/$job/run"/*.supervisor "$runtime_dir/rlx/$job"/*.supervisor; do
  [ -f "$f" ] || continue
  echo "supervisor|$f"
  sed 's/^/json|/' "$f"; echo
  pid=$(sed -n 's/.*"supervisor_pid" *: *\\([0-9]*\\).*/\\1/p' "$f")
  if [ -d /proc/self ]; then sed 's/^/proc|/' "/proc/$pid/stat"
  elif kill -0 "$pid"; then echo "alive|"; fi
done
"""

# Field 22 of /proc/PID/stat is the start time; the fields after the command begin with the third.
_START = 22 - 3


class SupervisorFile(BaseModel):
    """What a supervisor says of its rank; unknown fields are a newer supervisor's."""

    model_config = ConfigDict(frozen=True, strict=True)

    rank: int
    supervisor_pid: int
    supervisor_start: str
    active: str
    pid: int = 0
    ready: bool = False
    status: str = ""
    restarts: int = 0
    since: float = 0.0
    exit_status: int | None = None


def questions(enquiry: Enquiry) -> tuple[Question, ...]:
    """Return what to ask about the job's instances under each launch."""
    stem = f"rlx-{enquiry.job}@"
    job = quoted([enquiry.job])
    units = _UNITS.format(shown=_SHOWN)
    system = with_privilege(_STATES, f"{SYSTEM_RUN}/{enquiry.job}", sudo=enquiry.sudo)
    user_states = f'set -- "{USER_DATA}/{enquiry.job}/run" "$runtime_dir/rlx/{enquiry.job}"\n'
    in_session = "XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$uid}; export XDG_RUNTIME_DIR\n"
    return (
        Question(
            SYSTEM,
            f"[ -d /run/systemd/system ] || exit 0\nmanager=--system\n"
            f"set -- {quoted([stem, SYSTEM_UNITS])}\n{units}"
            f"[ -d {quoted([f'{SYSTEM_RUN}/{enquiry.job}'])} ] || exit 0\n{system}",
        ),
        Question(
            USER,
            f"[ -d /run/systemd/system ] || exit 0\n{USER_PLACES}{in_session}manager=--user\n"
            f'set -- {quoted([stem])} "{USER_UNITS}"\n{units}',
        ),
        Question(PROCESSES, f"{USER_PLACES}job={job}\n{_SUPERVISORS}{user_states}{_STATES}"),
    )


def parse(answers: Answers) -> tuple[RankSeen, ...]:
    """Read the instances of every launch by rank; one that runs goes before one that does not."""
    states = {
        rank: node for name in (SYSTEM, PROCESSES) for rank, node in _states(answers.text(name))
    }
    ranks: dict[int, RankSeen] = {}
    for seen in (
        *_units(answers.text(SYSTEM), states),
        *_units(answers.text(USER), states),
        *_supervised(answers.text(PROCESSES), states),
    ):
        known = ranks.get(seen.rank)
        if known is None or (known.active == "inactive" and seen.active != "inactive"):
            ranks[seen.rank] = seen
    return tuple(ranks[rank] for rank in sorted(ranks))


def rank_of(name: str) -> int | None:
    """Return the rank in a unit's or a file's name: `…@3.service`, `3.state`."""
    found = re.search(r"(?:^|[@/])([0-9]+)\.(?:service|state|supervisor)$", name)
    return int(found[1]) if found else None


def _units(text: str, states: Mapping[int, Mapping[str, object]]) -> Iterator[RankSeen]:
    said = list(tagged(text))
    booted = _booted(dict(said))
    ranked = (rank_of(path) for tag, path in said if tag == "enabled")
    enabled = {rank for rank in ranked if rank is not None}
    shown: set[int] = set()
    for block in "\n".join(line for tag, line in said if tag == "unit").split("\n\n"):
        unit = dict(line.partition("=")[::2] for line in block.splitlines())
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
    active = unit.get("ActiveState", "inactive")
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


def _states(text: str) -> Iterator[tuple[int, dict[str, object]]]:
    """Read the nodes' own files; one that is being written or is no object counts as none."""
    for path, lines in _files(text, "state"):
        try:
            node = json.loads("\n".join(line for tag, line in lines if tag == "json"))
        except ValueError:
            continue
        if (rank := rank_of(path)) is not None and isinstance(node, dict):
            yield rank, node


def _supervised(text: str, states: Mapping[int, Mapping[str, object]]) -> Iterator[RankSeen]:
    for path, lines in _files(text, "supervisor"):
        if (rank := rank_of(path)) is not None:
            yield _one_supervised(rank, lines, states.get(rank, {}))


def _one_supervised(
    rank: int, lines: list[tuple[str, str]], node: Mapping[str, object]
) -> RankSeen:
    try:
        said = SupervisorFile.model_validate_json(
            "".join(line for tag, line in lines if tag == "json")
        )
    except ValidationError:
        return RankSeen(rank, "failed", status="its supervisor's file cannot be read", node=node)
    ended = said.active in {"failed", "inactive"}
    if not ended and not _alive(said, lines):
        return RankSeen(
            rank,
            "failed",
            restarts=said.restarts,
            since=said.since,
            status="its supervisor is gone",
            exit_status=said.exit_status,
            node=node,
        )
    return RankSeen(
        rank=rank,
        active=said.active,
        ready=said.ready and not ended,
        pid=0 if ended else said.pid,
        restarts=said.restarts,
        since=said.since,
        status=said.status,
        exit_status=said.exit_status,
        node=node,
    )


def _alive(said: SupervisorFile, lines: list[tuple[str, str]]) -> bool:
    for tag, line in lines:
        if tag == "alive":
            return True
        if tag == "proc":
            rest = line.rpartition(") ")[2].split()
            return len(rest) > _START and rest[_START] == said.supervisor_start
    return False


def _files(text: str, head: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Split at the `state|PATH` or `supervisor|PATH` lines; yield those of *head*."""
    kept: list[tuple[str, list[tuple[str, str]]]] = []
    for tag, rest in tagged(text):
        if tag in {"state", "supervisor"}:
            kept.append((f"{tag}|{rest}", []))
        elif kept:
            kept[-1][1].append((tag, rest))
    for name, lines in kept:
        tag, _, path = name.partition("|")
        if tag == head:
            yield path, lines
