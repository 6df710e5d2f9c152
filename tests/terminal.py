"""A command on a terminal, and somebody who types one line when asked.

`python terminal.py PROMPT COMMAND...`: the line is on stdin, stdout is the command's own, and what
it shows on its terminal goes to stderr.  The exit status is the command's.
"""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

PATIENCE_S = 90.0


def main(prompt: str, argv: list[str]) -> int:
    """Run *argv* and return its exit status; -1 after too long."""
    line = sys.stdin.buffer.readline()
    master, slave = pty.openpty()
    # So wide that no sentence is folded.
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 40, 500, 0, 0))
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(master)
        for descriptor in (0, 2):
            os.dup2(slave, descriptor)
        # The first terminal that a session's leader opens becomes its own.
        os.close(os.open(os.ttyname(slave), os.O_RDWR))
        os.execvp(argv[0], argv)  # noqa: S606 - the command to be run, as it is
    os.close(slave)
    return _talk(master, child, prompt.encode(), line)


def _talk(master: int, child: int, prompt: bytes, line: bytes) -> int:
    shown, typed, deadline = b"", False, time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 0.2)
        piece = _read(master) if ready else None
        if piece == b"":
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        shown += piece or b""
        os.write(2, piece or b"")
        if not typed and prompt in shown and not _echoes(master):
            os.write(master, line)
            typed = True
    os.kill(child, 9)
    return -1


def _read(master: int) -> bytes:
    try:
        return os.read(master, 1 << 16)
    except OSError:  # Linux says so when the other end is closed
        return b""


def _echoes(master: int) -> bool:
    return bool(termios.tcgetattr(master)[3] & termios.ECHO)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
