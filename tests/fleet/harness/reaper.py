"""The watcher that outlives the test process and ends everything the run has made.

Started as `python -m tests.fleet.harness.reaper TOKEN PARENT`. It ends the run when its standard
input closes, which the kernel does for a parent killed with SIGKILL too, or when PARENT is gone
although some child of it still holds the pipe. An orderly end takes the very same way.
"""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from tests.fleet.harness.local import FleetError, try_lock
from tests.fleet.harness.runs import SWEEP_S, alive_file, strike

_REPOSITORY = Path(__file__).parents[3]
_READY = b"ready\n"


def start_reaper(token: str) -> subprocess.Popen[bytes]:
    """Return the watcher of the run *token*, once it watches."""
    argv = (sys.executable, "-m", __name__, token, str(os.getpid()))
    pipe = subprocess.PIPE
    reaper = subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, stderr=pipe, cwd=_REPOSITORY, start_new_session=True
    )
    if reaper.stdout is None or reaper.stdout.readline() != _READY:
        raise FleetError(f"the reaper did not start: {reaper.communicate()[1].decode()}")
    return reaper


def let_reap(reaper: subprocess.Popen[bytes]) -> None:
    """Close the pipe and wait until everything is gone; raise FleetError if something is left."""
    _, errors = reaper.communicate(timeout=2 * SWEEP_S)
    if reaper.returncode:
        raise FleetError(f"the run was not cleaned up: {errors.decode()}")


def main(token: str, parent: int) -> None:
    """Hold the run's lock until the parent is done with it, then end the run."""
    # The keyboard and a terminating job reach the parent; the watcher follows from that.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    watched = os.pidfd_open(parent)
    with alive_file(token).open("a") as alive:
        if not try_lock(alive.fileno()):
            raise FleetError(f"another reaper watches over {token}")
        sys.stdout.buffer.write(_READY)
        sys.stdout.flush()
        select.select([sys.stdin, watched], [], [])
        strike(token)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
