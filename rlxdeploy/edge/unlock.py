"""Freeing a job's lock on one host, whoever holds it."""

import secrets

from rlxdeploy.edge.frames import Frames
from rlxdeploy.edge.script import Terms, compose_unlock
from rlxdeploy.edge.session import OpenSession, framed
from rlxdeploy.errors import HostError
from rlxdeploy.model.plan import Site


def unlock_host(site: Site, open_session: OpenSession, deadline: float) -> str:
    """End whoever holds the lock and free it; return who that was, "" for nobody.

    A holder that is asked undoes what it had staged; one that does not listen is killed.  Raises
    HostError.
    """
    terms = Terms(secrets.token_hex(16), "unlock", 0, 0)
    with open_session(site.host, deadline) as session:
        try:
            session.send(framed(compose_unlock(site, terms)), deadline)
            said = Frames(session, terms.marker).next(deadline)
        except TimeoutError as error:
            raise HostError(site.host.name, "unlock", "no answer in time") from error
        word, text = said or ("", session.complaints.strip() or "the session ended")
    if word != "unlocked":
        raise HostError(site.host.name, "unlock", text.partition(" ")[2] or text)
    return text
