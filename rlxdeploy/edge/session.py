"""One exec on one host: a constant bootstrap, a script that it evaluates, and a byte channel.

Every host is asked and changed through one `/bin/sh -c BOOTSTRAP`, whatever its login shell is.
The bootstrap drops what it reads on stdin up to the line BEGIN, evaluates the lines up to END, and
leaves the bytes after END to the script: they stand on its stdin, so a payload may follow in the
same stream.  `read` takes one byte at a time from a pipe; a shell given a script on stdin reads
ahead and would swallow the payload.  Some `head -c N` read ahead too (busybox, BSD): what follows
a payload is sent only once the script has said that it has the payload.

A long script has a short one before it, which takes it with `dd`: some blocks in place of a system
call a byte, of which 40 KiB cost a host 25 milliseconds.  dd reads no more than it is told.

BOOTSTRAP holds no newline, single quote, backslash or `!`: within single quotes it means the same
to sh, bash, zsh, fish and csh, so `/bin/sh -c '<BOOTSTRAP>'` is the whole command to exec.
"""

import re
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from rlxdeploy.errors import HostError
from rlxdeploy.model.host import Host

BEGIN = "RLXDEPLOY-BEGIN"
END = "RLXDEPLOY-END"

# The shell's exit status where stdin ended before END: nothing was evaluated.
CUT_SHORT = 97

BOOTSTRAP = (
    "n=$(echo;echo _);n=${n%_};l=;s=;"
    f'until [ "$l" = {BEGIN} ];do IFS= read -r l||exit {CUT_SHORT};done;'
    f'until IFS= read -r l||exit {CUT_SHORT};[ "$l" = {END} ];do s=$s$l$n;done;'
    'eval "$s"'
)

# From here on starting dd costs less than reading lines.
_LONG = 4096

# It counts what it has: characters, which are bytes only in ASCII.
_LOADER = (
    't={size};s=;while [ "$t" -gt 0 ];do l=$(dd bs="$t" count=1 2>/dev/null;echo _);l=${{l%_}};'
    f'[ "$l" ]||exit {CUT_SHORT};s=$s$l;t=$((t-${{{{#l}}}}));done;eval "$s"'
)
_LOADED = re.compile(re.escape(_LOADER.format(size="@")).replace("@", "([0-9]+)").encode())


class SessionLost(HostError):
    """The session ended while we still had something to send."""


class Session(Protocol):
    """A running bootstrap on one host.  Deadlines are values of `time.monotonic()`.

    Whoever opens a session closes it (`with` does).  Nothing may rely on the far end closing its
    output: any background child may hold it open.  The shell inherits its environment from the
    host's login and stands in `/` or the home folder.
    """

    @property
    def host(self) -> Host:
        """The machine at the other end."""

    @property
    def complaints(self) -> str:
        """The tail of stderr so far, for a message to a person."""

    def send(self, data: bytes, deadline: float) -> None:
        """Hand over all of *data*; output that arrives meanwhile is kept for `read`.

        Raises SessionLost when the far end reads no more, TimeoutError at the deadline.
        """

    def read(self, deadline: float) -> bytes:
        """Return what the script has written to stdout, at least one byte; b"" once it ended.

        Raises TimeoutError at the deadline; the session can still be read afterwards.
        """

    def close(self) -> int | None:
        """End the session and kill what is left of it here; a second call does nothing more.

        What shall outlive the session has to leave its process group (setsid).  Returns the exit
        status of the shell where it had ended by itself, else None.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


# Opens a session on a host by the deadline; raises HostError (Unreachable, Untrusted, Refused).
OpenSession = Callable[[Host, float], Session]


def framed(script: str) -> bytes:
    """Return *script* as the bootstrap wants it on stdin; a payload may follow these bytes.

    The script is evaluated whole in the bootstrap's own shell, where `l`, `n`, `s` and `t` may be
    set.
    """
    if "\0" in script or END in script.split("\n"):
        raise ValueError(f"a script holds neither NUL nor the line {END}")
    if len(script) > _LONG and script.isascii():
        return framed(_LOADER.format(size=len(script))) + script.encode()
    return in_lines(script)


def in_lines(script: str) -> bytes:
    """Return *script* so that lines put behind it are the next thing that it reads."""
    return "\n".join([BEGIN, script.removesuffix("\n"), END, ""]).encode()


def parted(sent: bytes) -> tuple[str, bytes]:
    """Return the script that *sent* was `framed` from, and the payload behind it."""
    head, _, rest = sent.partition(f"\n{END}\n".encode())
    head = head.removeprefix(f"{BEGIN}\n".encode())
    if not (loader := _LOADED.fullmatch(head)):
        return head.decode(), rest
    size = int(loader[1])
    return rest[:size].decode(), rest[size:]
