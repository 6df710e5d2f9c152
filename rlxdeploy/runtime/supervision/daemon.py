"""Leaving the starter behind, being the only one, and files others read whole or not at all."""

import fcntl
import os
import sys
from pathlib import Path
from typing import Callable, Optional

# The starter waits for the word of the supervisor; a disk that hangs must not hang it for ever.
WORD_LIMIT = 4096


class AlreadyRuns(Exception):
    """Another supervisor holds the lock."""


def detach(serve: Callable[[Callable[[str], None]], None]) -> int:
    """Run *serve* in a process of its own session and return the starter's exit status.

    *serve* gets a function to call once: with "" when it is up, or with why it is not.  The starter
    returns then, 0 or 1, having printed the reason.  The new process has no terminal, no descriptor
    of the starter's but that one, `/` for a working directory and umask 077.
    """
    hears, says = os.pipe()
    first = os.fork()
    if first == 0:
        _be_the_daemon(serve, says)
    os.close(says)
    os.waitpid(first, 0)
    with os.fdopen(hears, "rb") as pipe:
        word = pipe.read(WORD_LIMIT).decode("utf-8", "replace")
    if word == "up":
        return 0
    sys.stderr.write((word or "the supervisor died before it was up") + "\n")
    return 1


def _be_the_daemon(serve: Callable[[Callable[[str], None]], None], says: int) -> None:
    try:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        os.chdir("/")
        os.umask(0o077)
        _drop_descriptors(says)

        def report(trouble: str) -> None:
            os.write(says, (trouble or "up").encode())
            os.close(says)

        serve(report)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - a forked copy must never return into its parent's code
        sys.excepthook(*sys.exc_info())
        os._exit(1)


def _drop_descriptors(kept: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    limit = min(os.sysconf("SC_OPEN_MAX"), 65536)
    os.closerange(3, kept)
    os.closerange(kept + 1, limit)


def hold_alone(path: Path) -> int:
    """Lock the file at *path* until this process ends; raises AlreadyRuns."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(file)
        raise AlreadyRuns from error
    return file


def replace_file(path: Path, text: str) -> None:
    """Have *text* in the file at *path*; a reader sees the old text or the new, never half."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            stream.write(text)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def start_time(pid: int) -> Optional[str]:
    """Return when *pid* started, in the kernel's ticks; None where /proc does not tell.

    Field 22 of proc(5)'s stat: with the pid it names a process for as long as the host is up.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()[19]
