"""What a use case tells its caller while it works; only the command line draws it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Doing:
    """How far a stage is: *done* of *total*, whom it still waits for, and what else is known."""

    stage: str
    done: int
    total: int
    waiting: tuple[str, ...] = ()
    note: str = ""


Say = Callable[[Doing], None]


def nobody(_doing: Doing) -> None:
    """Tell no one."""
