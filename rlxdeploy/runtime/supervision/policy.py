"""What becomes of a rank whose process ended: pure, `now` is an argument."""

import signal
from dataclasses import dataclass
from typing import List, Tuple

# systemd.service(5): these end a service cleanly.
CLEAN_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)

# What a shell would report: 128 and the signal.  systemd.exec(5): a process that could not start.
SIGNALLED = 128
EXIT_CHDIR = 200
EXIT_EXEC = 203


@dataclass(frozen=True)
class Ending:
    """How a process ended: *code* as Popen has it; *cause* says what made us end it, if we did."""

    code: int
    cause: str = ""

    @property
    def exit_status(self) -> int:
        """Return the exit status, or 128 and the signal's number."""
        return self.code if self.code >= 0 else SIGNALLED - self.code

    @property
    def clean(self) -> bool:
        return not self.cause and (self.code == 0 or -self.code in CLEAN_SIGNALS)

    def __str__(self) -> str:
        if self.cause:
            return self.cause
        if self.code >= 0:
            return f"exit {self.code}"
        return f"killed by {_signal_name(-self.code)}"


def restarts(ending: Ending, restart: str, prevent: Tuple[int, ...]) -> bool:
    """Tell whether a process that ended on its own starts again (Restart=)."""
    if not ending.cause and ending.code in prevent:
        return False
    return restart == "always" or (restart == "on-failure" and not ending.clean)


class StartLimit:
    """At most *burst* starts in any *interval* seconds (StartLimitBurst=, …IntervalSec=)."""

    def __init__(self, burst: int, interval: float) -> None:
        self.burst, self.interval = burst, interval
        self._starts: List[float] = []

    def admits(self, now: float) -> bool:
        """Tell whether one more start is allowed at *now*, and count it if so."""
        self._starts = [start for start in self._starts if now - start < self.interval]
        if len(self._starts) >= self.burst:
            return False
        self._starts.append(now)
        return True


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
