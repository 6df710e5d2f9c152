"""Commands, waits and locks on this machine, each with an end."""

import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

POLL_S = 0.05
PAUSE_S = 2.0


class FleetError(Exception):
    """The fleet, not the code under test, did not do as asked."""


def run(
    argv: Sequence[str],
    *,
    stdin: str = "",
    timeout: float = 30.0,
    env: Mapping[str, str] | None = None,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run *argv* to its end; raise FleetError at the deadline or, if *check*, on failure."""
    try:
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=timeout, env=env, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise FleetError(f"{argv}: not finished after {timeout} s") from late
    if check and done.returncode:
        raise FleetError(f"{argv}: exit {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done


def wait_until(lacking: Callable[[], str], within: float) -> None:
    """Wait until *lacking* answers nothing; at the deadline raise its last answer.

    The longer an answer takes, the longer is the pause after it: what is waited for needs the
    processor too.
    """
    began = time.monotonic()
    deadline = began + within
    while missing := lacking():
        ended = time.monotonic()
        if ended > deadline:
            raise FleetError(f"after {within:.0f} s still lacking: {missing}")
        time.sleep(min(max(POLL_S, 2 * (ended - began)), PAUSE_S))
        began = time.monotonic()


@contextmanager
def locked(path: Path, within: float) -> Iterator[None]:
    """Hold *path* against other runs; raise FleetError when it is not free in time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        wait_until(lambda: "" if try_lock(handle.fileno()) else f"the lock {path}", within)
        yield


@contextmanager
def usual_umask() -> Iterator[None]:
    """Make what becomes a host's files readable to its users, whatever umask the tests have."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def try_lock(fd: int) -> bool:
    """Take the lock on *fd*, held until it is closed; say whether it was free."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
