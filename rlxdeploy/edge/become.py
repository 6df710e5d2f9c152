"""A session that brings the password for sudo with it, to whatever asks for root there.

It wraps every session of a run for which a person has given one, so that no script can forget it:
the first thing sent is a script, and one that does nothing as root is sent without.  The password
goes through the channel alone: it is in no argument, no environment and no file.
"""

from rlxdeploy.edge.session import Session, in_lines, parted
from rlxdeploy.errors import UsageError
from rlxdeploy.facts.privilege import LONGEST_PASSWORD, PRELUDE, asks_for_root
from rlxdeploy.model.host import Host


def usable_password(text: str) -> str:
    """Return *text* if sudo can be told it in one line; raises UsageError, which quotes nothing."""
    if not text:
        raise UsageError("no password was given")
    if not text.isprintable():
        raise UsageError("the password has a character in it that sudo cannot be told in one line")
    if len(text.encode()) > LONGEST_PASSWORD:
        raise UsageError(f"sudo reads no password of more than {LONGEST_PASSWORD} bytes")
    return text


def with_password(sent: bytes, password: str) -> bytes:
    """Return *sent*, a framed script and what follows it, with *password* if it asks for root.

    One line is for the script itself, the other for the sudo that may take its place.
    """
    script, payload = parted(sent)
    if not asks_for_root(script):
        return sent
    line = f"{password}\n".encode()
    return in_lines(f"{PRELUDE}{script}") + line + line + payload


class PasswordSession(Session):
    """*session*, whose script is sent with *password*; see `edge.session.Session`."""

    def __init__(self, session: Session, password: str) -> None:
        self._session, self._password = session, password

    @property
    def host(self) -> Host:
        """The machine at the other end."""
        return self._session.host

    @property
    def complaints(self) -> str:
        """The tail of stderr so far."""
        return self._session.complaints

    def send(self, data: bytes, deadline: float) -> None:
        """Hand over all of *data*, and the password once, right behind the script."""
        password, self._password = self._password, ""
        self._session.send(with_password(data, password) if password else data, deadline)

    def read(self, deadline: float) -> bytes:
        """Return what has arrived."""
        return self._session.read(deadline)

    def close(self) -> int | None:
        """End the session."""
        return self._session.close()
