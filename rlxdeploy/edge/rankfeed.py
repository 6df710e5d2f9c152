"""How the ranks on one host are, twice a second, over one session for as long as it is wanted.

A loop on the host asks those questions of the survey that tell of instances, and ends when we hang
up.
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
from rlxdeploy.facts.script import Patience, Transcript, compose
from rlxdeploy.model.plan import HostPlan
from rlxdeploy.model.survey import RankSeen
from rlxdeploy.model.targets import Enquiry
from rlxdeploy.model.vocabulary import Launch

_DOING = "watch the ranks"

# `/bin/sh -c`, not a subshell: the questions tell their own children by the number of their shell.
_LOOP = """\
ask={ask}
while :; do
  /bin/sh -c "$ask" || exit
  sleep 0.5 2>/dev/null || sleep 1
done </dev/null &
loop=$!; cat >/dev/null; kill $loop
"""


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """Seconds: to open a session, to look once, and until we notice that nobody wants more."""

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

    def looks(self, over: threading.Event) -> Iterator[tuple[RankSeen, ...]]:
        """Yield how all instances on the host are, until *over*; raises HostError if it ends."""
        questions = units.questions(Enquiry(self.job, sudo=self.part.launch == Launch.SYSTEMD))
        marker = secrets.token_hex(16)
        opened_by = time.monotonic() + self.limits.opening
        with self.open_session(self.part.host, opened_by) as session:
            ask = compose(questions, marker, self.limits.look)
            _send(session, _LOOP.format(ask=shlex.quote(ask)), opened_by)
            transcript = Transcript(questions, marker)
            for line in self._lines(session, over):
                transcript.feed(line)
                if transcript.ended:
                    yield units.parse(transcript.answers())
                    transcript = Transcript(questions, marker)

    def _lines(self, session: Session, over: threading.Event) -> Iterator[bytes]:
        rest = b""
        while not over.is_set():
            try:
                piece = session.read(time.monotonic() + self.limits.notice)
            except TimeoutError:
                continue
            if not piece:
                why = session.complaints.strip() or "the session ended"
                raise HostError(session.host.name, _DOING, why)
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line + b"\n" for line in lines)


def _send(session: Session, script: str, deadline: float) -> None:
    try:
        session.send(framed(script), deadline)
    except TimeoutError as error:
        raise HostError(session.host.name, _DOING, "it takes nothing in time") from error
