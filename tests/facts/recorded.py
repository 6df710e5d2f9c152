"""Recorded answers: `cases/<tool>/<case>.toml` says where each comes from and what is right."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlxdeploy.facts.question import Answer, Answers

FOLDER = Path(__file__).with_name("cases")


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded host's answers, and the sidecar that holds the right reading."""

    name: str
    sidecar: dict[str, Any]
    answers: Answers


def cases(tool: str) -> list[Case]:
    return [_case(path) for path in sorted((FOLDER / tool).glob("*.toml"))]


def _case(path: Path) -> Case:
    sidecar = tomllib.loads(path.read_text(encoding="utf-8"))
    given = {
        name: Answer(
            (path.parent / answer["file"]).read_text(encoding="utf-8"), answer.get("status", 0)
        )
        for name, answer in sidecar["answers"].items()
    }
    return Case(path.stem, sidecar, Answers(given, tuple(sidecar.get("unanswered", ()))))
