"""How the ranks on one host are, every second, over one session for as long as it is wanted.

A loop on the host asks those questions of the survey that tell of instances of the plan's launch,
and ends when we hang up.  Each look costs the host a dozen processes, while its ranks want to
start: so the looks are few, and one that is wanted soon is asked for by a line.
"""

import secrets
import shlex
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from rlxdeploy.edge.session import OpenSession, Session, framed
from rlxdeploy.errors import HostError
from rlxdeploy.facts import units
from rlxdeploy.facts.privilege import as_root_or
from rlxdeploy.facts.question import AnswerError, legible
from rlxdeploy.facts.script import Patience, Transcript, compose
from rlxdeploy.model.plan import HostPlan
from rlxdeploy.model.survey import RankSeen
from rlxdeploy.model.targets import Enquiry
from rlxdeploy.model.vocabulary import Launch

_DOING = "watch the ranks"

# `/bin/sh -c`, not a subshell: the questions tell their own children by the number of their shell.
_LOOP = """\
ask={ask}
(
  trap 'soon=1' USR1
  while :; do
    soon=; /bin/sh -c "$ask" || exit
    [ -n "$soon" ] || {{ sleep 1 & nap=$!; wait $nap; kill $nap; }} 2>/dev/null
  done
) </dev/null &
loop=$!
while read -r line; do kill -USR1 $loop; done
kill $loop
"""


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """Seconds: to open a session, to look once, and until we notice what is wanted now."""

    opening: float = 10.0
    look: Patience = field(default_factory=lambda: Patience(quick=4.0, slow=4.0))
    notice: float = 0.2


@dataclass(frozen=True, slots=True)
class RankFeed:
    """The ranks of *job* on the host of *part*."""

    job: str
    part: HostPlan
    open_session: OpenSession
    limits: FeedLimits

    def looks(self, over: threading.Event, soon: threading.Event) -> Iterator[tuple[RankSeen, ...]]:
        """Yield how all instances on the host are, until *over*; raises HostError if it ends.

        Once *soon* is set, the next look is taken without waiting for its time.
        """
        launch = Launch(self.part.launch)
        questions = units.questions(Enquiry(self.job), launch)
        marker = secrets.token_hex(16)
        opened_by = time.monotonic() + self.limits.opening
        with self.open_session(self.part.host, opened_by) as session:
            ask = compose(questions, marker, self.limits.look)
            _send(session, framed(self._script(ask)), opened_by)
            transcript = Transcript(questions, marker)
            for line in self._lines(session, over, soon):
                transcript.feed(line)
                if transcript.ended:
                    yield self._read(transcript, launch)
                    transcript = Transcript(questions, marker)

    def _read(self, transcript: Transcript, launch: Launch) -> tuple[RankSeen, ...]:
        """Return what a look has shown; a host that is busy with its ranks may miss a deadline."""
        try:
            return legible(launch, lambda: units.parse(transcript.answers(), launch))
        except AnswerError as error:
            raise HostError(self.part.host.name, _DOING, str(error)) from error

    def _script(self, ask: str) -> str:
        """Return the loop that asks, as root where units are the system's: root is asked for once.

        The user's units are then root's own, and of such a job there are none.
        """
        loop = _LOOP.format(ask=shlex.quote(ask))
        if self.part.launch != Launch.SYSTEMD:
            return loop
        return as_root_or(f"exec /bin/sh -c {shlex.quote(loop)}", loop)

    def _lines(
        self, session: Session, over: threading.Event, soon: threading.Event
    ) -> Iterator[bytes]:
        rest, asked = b"", False
        while not over.is_set():
            if soon.is_set() and not asked:
                asked = True
                _send(session, b"\n", time.monotonic() + self.limits.opening)
            try:
                piece = session.read(time.monotonic() + self.limits.notice)
            except TimeoutError:
                continue
            if not piece:
                why = session.complaints.strip() or "the session ended"
                raise HostError(session.host.name, _DOING, why)
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line + b"\n" for line in lines)


def _send(session: Session, data: bytes, deadline: float) -> None:
    try:
        session.send(data, deadline)
    except TimeoutError as error:
        raise HostError(session.host.name, _DOING, "it takes nothing in time") from error
