"""The file in which a rank says how far it has come; `rlxdeploy status` reads it.

A JSON object, always whole, replaced in one step:

    format      1
    rank world  numbers
    job plan    RLX_JOB and RLX_PLAN as given, perhaps empty
    pid         the process that wrote it
    phase       joining, ready, leaving
    began_at    when this process began to join, seconds since 1970
    missing     while joining: the ranks without a link yet
    in_vain     while joining: why the last dial failed, by the ranks among those that are dialled
                from here, in decimal; of many the first 16
    epoch       what the ranks agreed to call this formation of the group, 32 hex digits; null
                before, and in a program that did not run the self-check
    digest      SHA-256 all ranks agreed on in the self-check, 64 hex digits; null as above
    joined_at   when the group was whole, seconds since 1970; null before
    error       why the rank leaves, if something went wrong; else null
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Mapping, Optional, Tuple

_READABLE = 0o644


@dataclass(frozen=True)
class RankState:
    """The content of the file."""

    rank: int
    world: int
    job: str
    plan: str
    pid: int
    phase: str = "joining"
    began_at: float = 0.0
    missing: Tuple[int, ...] = ()
    in_vain: Mapping[str, str] = field(default_factory=dict)
    epoch: Optional[str] = None
    digest: Optional[str] = None
    joined_at: Optional[float] = None
    error: Optional[str] = None
    format: int = 1


def write_state(path: Path, state: RankState) -> None:
    """Replace the file at *path*; OSError where that cannot be done."""
    descriptor, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(state), file, sort_keys=True)
            file.write("\n")
        Path(beside).chmod(_READABLE)
        Path(beside).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(beside).unlink()
        raise
