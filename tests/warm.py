"""The command in a process of its own that need not import it.

Most of a short run is an interpreter's start and its imports.  Here one interpreter has done both
and forks for each run: a process with its own arguments, environment, folder, streams, session
and end, as if started, but for what Python reads once at its start: `PYTHON…` and the locale.
"""

import atexit
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

SERVER = Path(__file__).with_name("warm_server.py")
END_S = 30.0
# Python reads these at its start alone, when it is too early for a run's own.
READ_AT_START = ("PYTHON", "LANG", "LC_")

Start = Callable[[Sequence[str], tuple[int, ...]], subprocess.Popen[str]]


class Warm:
    """One interpreter, started by *start* with its arguments and the descriptors to leave open."""

    def __init__(self, start: Start) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = (sys.executable, "-P", str(SERVER), str(theirs.fileno()))
        with theirs:
            self._server = start(argv, (theirs.fileno(),))

    def run(
        self,
        arguments: Sequence[str],
        *,
        environ: Mapping[str, str],
        folder: Path,
        timeout: float,
    ) -> subprocess.CompletedProcess[str]:
        """Run `rlxdeploy` with *arguments* to its end, with nothing on stdin.

        Raises TimeoutExpired after *timeout* seconds, when the run has been killed.
        """
        argv = ["rlxdeploy", *arguments]
        request = {"argv": argv, "environ": dict(environ), "folder": str(folder)}
        ours, theirs = zip(*(os.pipe() for _ in range(3)), strict=True)
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            socket.send_fds(self._requests, [json.dumps(request).encode()], [nothing, *theirs])
        except OSError as gone:
            raise self._gone() from gone
        finally:
            for end in (nothing, *theirs):
                os.close(end)
        out, err, told = _read_all(ours, argv, timeout)
        if not told:
            raise self._gone()
        code = os.waitstatus_to_exitcode(int(told.split()[1]))
        return subprocess.CompletedProcess(argv, code, out.decode(), err.decode())

    def _gone(self) -> ChildProcessError:
        _, why = self._server.communicate(timeout=END_S)
        return ChildProcessError(f"what forks for each command has ended: {why}")

    def close(self) -> None:
        """End the interpreter."""
        self._requests.close()
        self._server.communicate(timeout=END_S)


@cache
def warm() -> Warm:
    """Return the one interpreter of this process, which goes when this process does."""
    made = Warm(
        lambda argv, kept: subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=kept,
            text=True,
            start_new_session=True,
        )
    )
    atexit.register(made.close)
    return made


def _read_all(ends: Sequence[int], argv: Sequence[str], timeout: float) -> list[bytes]:
    """Read out of all *ends* until nobody has their others; the last tells the process."""
    read = {end: bytearray() for end in ends}
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as waiting:
        for end in ends:
            waiting.register(end, selectors.EVENT_READ)
        while waiting.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                for number in read[ends[-1]].split()[:1]:
                    os.killpg(int(number), signal.SIGKILL)
                out, err, _ = map(bytes, read.values())
                raise subprocess.TimeoutExpired(argv, timeout, out, err)
            for key, _ in waiting.select(left):
                piece = os.read(key.fd, 1 << 16)
                read[key.fd] += piece
                if not piece:
                    waiting.unregister(key.fd)
    for end in ends:
        os.close(end)
    return [bytes(text) for text in read.values()]
