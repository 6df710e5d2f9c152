"""The controller's own interfaces, asked as any host is asked for them."""

import secrets
import time

from rlxdeploy.edge.local import open_local
from rlxdeploy.edge.session import framed
from rlxdeploy.errors import HostError
from rlxdeploy.facts import network
from rlxdeploy.facts.question import AnswerError, legible
from rlxdeploy.facts.script import Patience, Transcript, compose
from rlxdeploy.model.host import Host
from rlxdeploy.model.survey import Network

DOING = "list the interfaces"

# Reading them takes milliseconds; this is a machine deep in swap.
_PATIENCE = Patience(5.0, 5.0)


def own_network(host: Host) -> Network:
    """Return the interfaces of the machine we run on, which messages call *host*.

    Raises HostError where its shell does not tell.
    """
    questions, marker = network.questions(), secrets.token_hex(16)
    transcript = Transcript(questions, marker)
    deadline = time.monotonic() + 2 * _PATIENCE.whole
    try:
        with open_local(host, deadline) as session:
            session.send(framed(compose(questions, marker, _PATIENCE)), deadline)
            while not transcript.ended and (piece := session.read(deadline)):
                transcript.feed(piece)
        return legible("interfaces", lambda: network.parse(transcript.answers()))
    except (TimeoutError, AnswerError) as error:
        raise HostError(host.name, DOING, str(error)) from error
