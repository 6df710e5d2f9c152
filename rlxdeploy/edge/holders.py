"""Who holds a port now: the survey's own question, asked of one host again."""

import secrets
import time

from rlxdeploy.edge.session import OpenSession, framed
from rlxdeploy.errors import HostError
from rlxdeploy.facts import holders
from rlxdeploy.facts.question import AnswerError, legible
from rlxdeploy.facts.script import Patience, Transcript, compose
from rlxdeploy.model.host import Host
from rlxdeploy.model.survey import PortHolder
from rlxdeploy.model.targets import Enquiry

_PATIENCE = Patience()
_OPENING_S = 10.0


def holders_of(host: Host, enquiry: Enquiry, open_session: OpenSession) -> tuple[PortHolder, ...]:
    """Return who listens on the ports of *enquiry*; nobody where the host does not say."""
    questions, marker = holders.questions(enquiry), secrets.token_hex(16)
    transcript = Transcript(questions, marker)
    deadline = time.monotonic() + _OPENING_S + _PATIENCE.whole
    try:
        with open_session(host, time.monotonic() + _OPENING_S) as session:
            session.send(framed(compose(questions, marker, _PATIENCE)), deadline)
            while not transcript.ended and (piece := session.read(deadline)):
                transcript.feed(piece)
        return legible("ports", lambda: holders.parse(enquiry, transcript.answers(), ()))
    except (HostError, TimeoutError, AnswerError):
        return ()
