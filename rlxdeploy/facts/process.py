"""What tells one process from a later one with the same number."""

# Field 22 of /proc/PID/stat is the start time.  The command, field 2, may hold anything, so we
# count from behind it, where the third field stands: the state.
_START_TIME = 22 - 3
_ENDED = frozenset("ZXx")


def start_time(stat: str) -> str:
    """Return the start time in a /proc/PID/stat, "" where it is none or the process has ended."""
    behind = stat.rpartition(") ")[2].split()
    return behind[_START_TIME] if len(behind) > _START_TIME and behind[0] not in _ENDED else ""
