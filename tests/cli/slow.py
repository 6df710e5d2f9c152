"""A stage of an apply that takes its time on the host, held up by a slow program."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.cli.desk import PATIENCE_S, Desk, until

# The program by which a host can be told to be in a stage, and how it is called then.
STAGES = {
    "survey": ("nvidia-smi", "*"),
    "stage": ("sync", "*payload* | *.tmp*"),
    "go": ("ln", "-s*\\ releases/*"),
    "confirm": ("ls", "-1t*"),
}
# What a host does last of all, before it lets an apply end.
LEAVING = "leaving"
_HELD = {**STAGES, LEAVING: ("rmdir", "*/releases\\ *")}
_SLOW = """\
#!/bin/sh
case "$*" in {when}) echo >{mark}; sleep 3 ;; esac
[ -x /usr/bin/{name} ] && exec /usr/bin/{name} "$@"
exec /bin/{name} "$@"
"""


@dataclass
class Slow:
    """A desk where one stage takes its time, and says when it has begun."""

    desk: Desk
    stage: str
    _quick: str = field(default="", init=False)

    @property
    def mark(self) -> Path:
        return self.desk.folder / "begun"

    def __enter__(self) -> Self:
        name, when = _HELD[self.stage]
        folder = self.desk.folder / "slow"
        folder.mkdir()
        (folder / name).write_text(_SLOW.format(when=when, mark=self.mark, name=name))
        (folder / name).chmod(0o755)
        self._quick = self.desk.environ["PATH"]
        self.desk.environ["PATH"] = f"{folder}:{self._quick}"
        return self

    def __exit__(self, *_: object) -> None:
        self.desk.environ["PATH"] = self._quick

    def begun(self, *arguments: str) -> subprocess.Popen[str]:
        """Return an apply that is in the stage."""
        process = self.desk.start("apply", "--yes", *arguments)
        until(self.mark.exists, PATIENCE_S)
        assert process.poll() is None
        return process


def slow_python(desk: Desk, mark: Path) -> str:
    """Return the key of an interpreter that takes its time over a preflight, and says so."""
    path = desk.folder / "python"
    slow = f'[ "$1 $2" != "-I -" ] || {{ echo >{mark}; sleep 5; }}'
    path.write_text(f'#!/bin/sh\n{slow}\nexec "{sys.executable}" "$@"\n')
    path.chmod(0o755)
    return f'python = "{path}"'
