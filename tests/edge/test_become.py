"""Root in one place: who is asked, and what a refusal says."""

import time
from pathlib import Path

import pytest

from rlxdeploy.edge.become import open_as_root
from rlxdeploy.edge.local import LocalSession
from rlxdeploy.edge.session import Session, framed
from rlxdeploy.errors import Refused
from rlxdeploy.model.host import Host
from rlxdeploy.model.vocabulary import Become

HERE = Host("local")


def soon() -> float:
    return time.monotonic() + 10


def open_local(host: Host, deadline: float, shell: tuple[str, ...]) -> Session:
    del deadline
    return LocalSession(host, shell)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a folder of programs before all others; `id` in it says that we are not root."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path / "id", "echo 1000")
    return tmp_path


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def said(become: Become) -> bytes:
    with open_as_root(open_local, HERE, become, soon()) as session:
        session.send(framed('echo "as ${AS:-is}"'), soon())
        return session.read(soon())


@pytest.mark.parametrize("become", list(Become))
def test_root_needs_no_sudo(tools: Path, become: Become) -> None:
    """Who logs in as root stays so, whatever become says."""
    program(tools / "id", "echo 0")
    program(tools / "sudo", "exit 1")

    assert said(become) == b"as is\n"


def test_sudo_runs_the_shell_where_it_asks_for_nothing(tools: Path) -> None:
    """The bootstrap runs under sudo, with -n, after one question."""
    program(
        tools / "sudo",
        f'printf "%s\\n" "$*" >>{tools}/log; [ "$1" = -n ] && shift\n'
        '[ "$1" = -- ] && shift; AS=root exec "$@"',
    )

    assert said(Become.AUTO) == b"as root\n"
    asked, ran = (tools / "log").read_text().splitlines()
    assert asked == "-n true"
    assert ran.startswith("-n -- /bin/sh -c ")


def test_a_password_is_never_guessed(tools: Path) -> None:
    """One question in any language, one refusal, and sudo is not run again."""
    program(tools / "sudo", f"echo x >>{tools}/log; echo '[sudo] 密码' >&2; exit 1")
    with pytest.raises(Refused, match="wants a password"):
        open_as_root(open_local, HERE, Become.AUTO, soon())
    assert (tools / "log").read_text() == "x\n"


def test_become_none_keeps_from_sudo(tools: Path) -> None:
    """Where the inventory forbids it, sudo that would work is not used."""
    program(tools / "sudo", "exit 0")
    with pytest.raises(Refused, match="not root"):
        open_as_root(open_local, HERE, Become.NONE, soon())


def test_a_host_without_sudo_says_so(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is looked for beyond the PATH of the login."""
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(Refused, match="no sudo"):
        open_as_root(open_local, HERE, Become.AUTO, soon())
