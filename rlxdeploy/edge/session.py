"""One exec on one host: a constant bootstrap, a script that it evaluates, and a byte channel.

Every host is asked and changed through one `/bin/sh -c BOOTSTRAP`, whatever its login shell is.
The bootstrap drops what it reads on stdin up to the line BEGIN, evaluates the lines up to END, and
leaves the bytes after END to the script: they stand on its stdin, so a payload may follow in the
same stream.  `read` takes one byte at a time from a pipe; a shell given a script on stdin reads
ahead and would swallow the payload.  Some `head -c N` read ahead too (busybox, BSD): what follows
a payload is sent only once the script has said that it has the payload.

BOOTSTRAP holds no newline, single quote, backslash or `!`: within single quotes it means the same
to sh, bash, zsh, fish and csh, so `/bin/sh -c '<BOOTSTRAP>'` is the whole command to exec.
"""

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

    The script is evaluated whole in the bootstrap's own shell, where `n`, `l` and `s` are set.
    """
    lines = script.removesuffix("\n").split("\n")
    if END in lines or "\0" in script:
        raise ValueError(f"a script holds neither NUL nor the line {END}")
    return "\n".join([BEGIN, *lines, END, ""]).encode()
