"""The output of one rank: its log file under process launch, the journal under units."""

import secrets
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass

from rlxdeploy.edge.session import OpenSession, Session, framed
from rlxdeploy.errors import HostError, Refused
from rlxdeploy.facts.privilege import as_root_if_it_can
from rlxdeploy.model.host import Host, Tree
from rlxdeploy.model.vocabulary import Launch

_SEND_S = 10.0
READING = "read the log"


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which lines of a rank's output: the last *lines*, from *since* on (units alone), and on."""

    tree: Tree
    launch: str
    rank: int
    lines: int = 20
    follow: bool = False
    since: str = ""

    @property
    def command(self) -> str:
        """The shell command that prints the lines on the host."""
        if self.launch == Launch.PROCESS:
            return self._tail()
        return self._journal()

    def _tail(self) -> str:
        log = shlex.quote(self.tree.log_file(self.rank))
        if self.follow:
            return f"exec tail -n {self.lines} -F {log} 2>/dev/null"
        # A log begun anew a moment ago says little without the end of the one before.
        return f"cat {log}.1 {log} 2>/dev/null | tail -n {self.lines}"

    def _journal(self) -> str:
        unit = f"rlx-{self.tree.job}@{self.rank}.service"
        words = [
            "journalctl",
            "-q",
            "--no-pager",
            "-o",
            "short-iso",
            "-n",
            str(self.lines),
            "-u",
            unit,
        ]
        if self.launch == Launch.SYSTEMD_USER:
            words[1:1] = ["--user"]
        words += ["--since", self.since] if self.since else []
        words += ["-f"] if self.follow else []
        asked = shlex.join(words)
        if self.launch == Launch.SYSTEMD_USER:
            runtime = "XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
            return f"{runtime}; export XDG_RUNTIME_DIR; exec {asked}"
        return as_root_if_it_can(f"exec {asked}")


# A follower has to end when we hang up, not at the next line it wants to write: stdin tells.
_FOLLOW = "( {command} ) </dev/null & reader=$!; cat >/dev/null; kill $reader 2>/dev/null\n"


def read_log(
    open_session: OpenSession, host: Host, query: LogQuery, timeout: float = 15.0
) -> tuple[str, ...]:
    """Return the last lines of a rank's output.

    Raises HostError where the host does not answer, or cannot read the time that is asked for.
    """
    deadline = time.monotonic() + timeout
    with open_session(host, deadline) as session:
        try:
            lines = tuple(_lines(session, f"( {query.command} ) </dev/null\n", deadline))
        except TimeoutError as error:
            raise HostError(host.name, READING, f"no answer in {timeout:g} s") from error
        if query.since and not lines and (why := session.complaints.strip()):
            raise Refused(host.name, READING, why)
    return lines


def follow_log(
    open_session: OpenSession, host: Host, query: LogQuery, deadline: float
) -> Iterator[str]:
    """Yield the lines as they come, until *deadline* or the session ends."""
    with open_session(host, deadline) as session:
        try:
            yield from _lines(session, _FOLLOW.format(command=query.command), deadline)
        except TimeoutError:
            return


def _lines(session: Session, script: str, deadline: float) -> Iterator[str]:
    """Yield what *script* prints; what a profile printed before it is dropped."""
    begin = secrets.token_hex(16)
    session.send(framed(f"printf '\\n%s\\n' {begin}\n{script}"), time.monotonic() + _SEND_S)
    rest, begun = b"", False
    while piece := session.read(deadline):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if begun:
                yield line.decode(errors="replace")
            begun = begun or line == begin.encode()
    if rest and begun:
        yield rest.decode(errors="replace")
