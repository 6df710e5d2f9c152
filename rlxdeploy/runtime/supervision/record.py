"""The supervisor file: one line of JSON that says what a supervisor runs and how that fares."""

import json
import os
from pathlib import Path
from typing import Any, Callable, Dict

from rlxdeploy.runtime.supervision.daemon import replace_file, start_time
from rlxdeploy.runtime.supervision.launch import Launch

FORMAT = 1


class Record:
    """What readers see; *active* uses systemd's words, *since* is the wall clock of the last start.

    *exit_status* is how the process last ended (128 and the signal's number if by a signal), kept
    through the next start.  *supervisor_start* and *pid_start* tell a process from a later one of
    the same number.  *joined* names the process that last said READY, as `PID START`, and outlives
    it.  A disk that refuses never stops the rank: *say* is told.
    """

    def __init__(self, launch: Launch, release: str, say: Callable[[str], None]) -> None:
        self.path, self._say = Path(launch.supervisor_file), say
        self._values: Dict[str, Any] = {
            "format": FORMAT,
            "rank": launch.rank,
            "supervisor_pid": os.getpid(),
            "supervisor_start": start_time(os.getpid()) or "",
            "pid": 0,
            "pid_start": "",
            "active": "activating",
            "ready": False,
            "joined": "",
            "status": "",
            "restarts": 0,
            "since": 0.0,
            "exit_status": None,
            "plan": launch.plan,
            "release": release,
        }

    @property
    def restarts(self) -> int:
        return int(self._values["restarts"])

    def publish(self, **changes: object) -> None:
        """Take *changes* over; the file is written only if something differs."""
        if changes.items() <= self._values.items():
            return
        self._values.update(changes)
        try:
            replace_file(self.path, json.dumps(self._values) + "\n")
        except OSError as error:
            self._say(f"cannot write {self.path}: {error.strerror}")

    def started(self, pid: int, active: str, since: float) -> None:
        """Say that *pid* runs."""
        start = start_time(pid) or ""
        self.publish(pid=pid, pid_start=start, active=active, ready=False, status="", since=since)

    def joined(self) -> None:
        """Say that the process that runs has said READY."""
        told = f"{self._values['pid']} {self._values['pid_start']}"
        self.publish(active="active", ready=True, joined=told)

    def ended(self, exit_status: int) -> None:
        """Say that no process runs, and how the last one ended."""
        self.publish(pid=0, pid_start="", ready=False, exit_status=exit_status)
