"""A session that brings a password: to whom it goes, and what may be one."""

import time
from collections.abc import Iterator

import pytest

from rlxdeploy.app.lab import Lab
from rlxdeploy.edge.become import PasswordSession, usable_password, with_password
from rlxdeploy.edge.local import LocalSession
from rlxdeploy.edge.session import framed
from rlxdeploy.errors import PasswordRefused, UsageError
from rlxdeploy.facts.privilege import as_root_or
from rlxdeploy.model.host import Host

HOST = Host("local")
PASSWORD = "hunter2"  # noqa: S105 - nobody's


@pytest.fixture
def session() -> Iterator[PasswordSession]:
    with PasswordSession(LocalSession(HOST), PASSWORD) as opened:
        yield opened


def soon() -> float:
    return time.monotonic() + 10


def test_a_script_that_does_nothing_as_root_is_sent_without_a_password(
    session: PasswordSession,
) -> None:
    """So is a host that is only looked at, and one whose ranks are its user's own."""
    session.send(framed("cat") + b"payload\n", soon())
    session.send(b"more\n", soon())

    assert with_password(framed("true"), PASSWORD) == framed("true")
    assert PASSWORD.encode() not in session.read(soon())


@pytest.mark.parametrize("before", ["", ":\n" * 3000], ids=["short", "long"])
def test_the_password_comes_once_right_behind_the_script(
    session: PasswordSession, before: str
) -> None:
    """Whatever the script's length; and what is sent after that is sent as it is."""
    session.send(framed(before + as_root_or("cat", "cat; exit")) + b"payload\n", soon())
    session.send(framed(as_root_or("cat", "cat")), soon())

    assert with_password(framed(as_root_or(":", ":")), PASSWORD).endswith(b"\nhunter2\nhunter2\n")
    said = session.read(soon())
    assert said.startswith(b"payload\n"), said
    assert PASSWORD.encode() not in said


UNUSABLE = {
    "nothing": ("", "no password was given"),
    "two lines": ("hunter2\nx", "a character in it that sudo cannot be told in one line"),
    "a NUL": ("hunter2\0", "a character in it"),
    "too long": ("hunter2" * 40, "no password of more than 255 bytes"),
    "too many bytes": ("é" * 128, "no password of more than 255 bytes"),
}


@pytest.mark.parametrize(("text", "said"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_what_sudo_would_not_read_as_one_line_is_refused(text: str, said: str) -> None:
    """The rest would be taken for a second attempt, or for the script's input."""
    with pytest.raises(UsageError) as caught:
        usable_password(text)

    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_host_that_has_refused_the_password_is_asked_no_more() -> None:
    """Whatever is to be done there next; the others are."""
    with Lab(password=PASSWORD) as lab:
        lab.spare(PasswordRefused("local", "become root", "sudo does not take the password"))
        with pytest.raises(PasswordRefused, match="sudo does not take the password"):
            lab.open_session(HOST, soon())
        lab.open_session(Host("other"), soon()).close()
