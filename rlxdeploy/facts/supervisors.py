"""What the ranks' own processes say in files: the built-in node, and a supervisor without systemd.

A supervisor writes `<rank>.supervisor`, the node `<rank>.state`; both are one JSON object.  A
supervisor's word counts only while the process that gave it is there: its pid and start time.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from rlxdeploy.facts import rows
from rlxdeploy.facts.places import USER_DATA, USER_PLACES, tagged
from rlxdeploy.facts.process import start_time
from rlxdeploy.facts.question import Question, quoted
from rlxdeploy.model.survey import RankSeen
from rlxdeploy.model.targets import Enquiry

NAME = "supervisors"

# The words are the folders in which instances say how they are.
STATES = """\
for folder; do
  for f in "$folder"/*.state; do
    [ -f "$f" ] && echo "state|$f" || continue
    while IFS= read -r line || [ -n "$line" ]; do printf 'json|%s\\n' "$line"; done <"$f"
  done
done
"""

_SUPERVISORS = """\
for f in "$data_home/rlx/$job/run"/*.supervisor "$runtime_dir/rlx/$job"/*.supervisor; do
  [ -f "$f" ] || continue
  echo "supervisor|$f"
  pid=$(sed -n 's/.*"supervisor_pid" *: *\\([0-9]*\\).*/\\1/p' "$f")
  if [ -d /proc/self ]; then sed 's/^/proc|/' "/proc/$pid/stat"
  elif kill -0 "$pid"; then echo "alive|"; fi
  # After its process was looked for: one that has gone has said its last word by then.
  sed 's/^/json|/' "$f"; echo
done
"""


class SupervisorFile(BaseModel):
    """What a supervisor says of its rank; unknown fields are a newer supervisor's."""

    model_config = ConfigDict(frozen=True, strict=True)

    rank: int
    supervisor_pid: int
    supervisor_start: str
    active: Literal["activating", "active", "exited", "failed", "inactive"]
    pid: int = 0
    ready: bool = False
    status: str = ""
    restarts: int = 0
    since: float = 0.0
    exit_status: int | None = None


def question(enquiry: Enquiry) -> Question:
    """Return what to ask about supervised ranks; they lie in the user's tree alone."""
    job = quoted([enquiry.job])
    folders = f'set -- "{USER_DATA}/$job/run" "$runtime_dir/rlx/$job"\n'
    return Question(
        NAME, f"{USER_PLACES}job={job}\n{_SUPERVISORS}{folders}{STATES}", row=rows.HOME, plain=True
    )


def rank_of(name: str) -> int | None:
    """Return the rank in a unit's or a file's name: `…@3.service`, `3.state`."""
    found = re.search(r"(?:^|[@/])([0-9]+)\.(?:service|state|supervisor)$", name)
    return int(found[1]) if found else None


def states(text: str) -> Iterator[tuple[int, dict[str, object]]]:
    """Read the nodes' own files; one that is being written or is no object counts as none."""
    for path, lines in _files(text, "state"):
        try:
            node = json.loads("\n".join(line for tag, line in lines if tag == "json"))
        except ValueError:
            continue
        if (rank := rank_of(path)) is not None and isinstance(node, dict):
            yield rank, node


def supervised(text: str, states: Mapping[int, Mapping[str, object]]) -> Iterator[RankSeen]:
    """Read what the supervisors say, each with the state of its node."""
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
    ended = said.active in {"exited", "failed", "inactive"}
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
            return start_time(line) == said.supervisor_start
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
