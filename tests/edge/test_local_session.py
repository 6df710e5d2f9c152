"""The session over a local shell: what every session promises."""

import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rlxdeploy.edge.local import LocalSession
from rlxdeploy.edge.session import BEGIN, BOOTSTRAP, CUT_SHORT, END, Session, SessionLost, framed
from rlxdeploy.errors import Unreachable
from rlxdeploy.model.host import Host

HERE = Host("local")
SHELLS = {
    name: command
    for name, command in {
        "sh": ("/bin/sh",),
        "dash": ("dash",),
        "bash": ("bash", "--posix"),
        "busybox": ("busybox", "ash"),
    }.items()
    if shutil.which(command[0])
}

SHORT = "true\n"
# More than a pipe holds, so that it comes in pieces.
LONG = "true  \n" * 20_000
HALVES = {
    "in lines": f"{BEGIN}\necho half\n".encode(),
    "in blocks": framed(f"{LONG}echo whole\n")[:-1],
}


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def gone(pid: int) -> bool:
    """Tell whether *pid* runs no more; a zombie that init has yet to reap counts as gone."""
    for _ in range(100):
        stat = Path(f"/proc/{pid}/stat")
        with suppress(FileNotFoundError, ProcessLookupError):
            if stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z":
                time.sleep(0.02)
                continue
        return True
    return False


def everything(session: Session) -> bytes:
    pieces = []
    while piece := session.read(soon()):
        pieces.append(piece)
    return b"".join(pieces)


@pytest.fixture(params=list(SHELLS.values()), ids=list(SHELLS))
def session(request: pytest.FixtureRequest) -> Iterator[LocalSession]:
    """A fresh session over each shell that this machine has."""
    with LocalSession(HERE, request.param) as opened:
        yield opened


@pytest.mark.parametrize("script", [SHORT, LONG], ids=["short", "long"])
def test_a_payload_follows_the_script_byte_for_byte(session: LocalSession, script: str) -> None:
    """Nothing is read past the script, by line or by block: it finds the payload whole on stdin."""
    payload = bytes(range(256)) * 2000
    script = f"{script}head -c {len(payload)}; echo STAGED; read -r word; echo $word"
    session.send(framed(script) + payload, soon())
    arrived = b""
    while not arrived.endswith(b"STAGED\n"):
        arrived += session.read(soon())
    assert arrived == payload + b"STAGED\n"

    session.send(b"GO\n", soon())
    assert everything(session) == b"GO\n"
    assert session.close() == 0


def test_what_stands_before_the_script_is_dropped(session: LocalSession) -> None:
    """Lines before BEGIN, even END and a stray password, reach neither script nor output."""
    session.send(f"secret\n{END}\n\necho no\n".encode() + framed("echo yes"), soon())

    assert everything(session) == b"yes\n"


def test_a_script_keeps_its_bytes(session: LocalSession) -> None:
    """Blanks, backslashes, quotes, here-documents and odd separators survive the bootstrap."""
    text = "  a\\b \"c\" 'd' $e\n\tä\x85\u2028\f\r\v \\\n"
    session.send(framed(f"cat <<'X'\n{text}X"), soon())

    assert everything(session) == text.encode()


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS.keys())
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES.keys())
def test_half_a_script_is_not_run(shell: tuple[str, ...], half: bytes) -> None:
    """Where stdin ends before the script does nothing is evaluated; the exit status says so."""
    ran = subprocess.run([*shell, "-c", BOOTSTRAP], input=half, capture_output=True, check=False)

    assert (ran.stdout, ran.returncode) == (b"", CUT_SHORT)


@pytest.mark.parametrize("login", [("/bin/sh",), ("bash",), ("csh",), ("fish",), ("zsh",)])
def test_the_bootstrap_means_the_same_in_single_quotes(login: tuple[str, ...]) -> None:
    """A login shell that is given `/bin/sh -c '<bootstrap>'` hands it on unchanged."""
    assert not set(BOOTSTRAP) & set("\n'\\!")
    if shutil.which(login[0]):
        command = [*login, "-c", f"/bin/sh -c {shlex.quote(BOOTSTRAP)}"]
        ran = subprocess.run(command, input=framed("echo ok"), capture_output=True, check=True)
        assert ran.stdout == b"ok\n"


def test_a_silent_shell_costs_no_more_than_the_deadline() -> None:
    """Reading raises at the deadline, and what comes later can still be read."""
    with LocalSession(HERE) as session:
        session.send(framed("sleep 0.3; echo late"), soon())
        with pytest.raises(TimeoutError, match="local"):
            session.read(soon(0.05))
        assert session.read(soon()) == b"late\n"


def test_a_reader_that_never_reads_costs_no_more_than_the_deadline() -> None:
    """Sending more than the pipes hold to a script that reads nothing ends at the deadline."""
    with LocalSession(HERE) as session:
        session.send(framed("sleep 60"), soon())
        with pytest.raises(TimeoutError):
            session.send(bytes(1 << 20), soon(0.2))


def test_output_that_comes_while_we_send_stops_nothing() -> None:
    """A script that echoes more than a pipe holds while we still send does not stand still."""
    payload = bytes(1 << 20)
    with LocalSession(HERE) as session:
        session.send(framed(f"head -c {len(payload)}") + payload, soon())
        assert everything(session) == payload


def test_a_shell_that_ends_early_is_lost_with_its_last_words() -> None:
    """Sending to a shell that has gone raises SessionLost with the tail of its stderr."""
    with LocalSession(HERE) as session:
        session.send(framed("echo broken >&2; exit 3"), soon())
        assert everything(session) == b""
        with pytest.raises(SessionLost, match="broken"):
            session.send(bytes(1 << 20), soon())
        assert session.close() == 3


def test_closing_kills_what_is_left_and_is_idempotent() -> None:
    """A hung child of the session is gone after close, and nobody waits for its output."""
    with LocalSession(HERE) as session:
        session.send(framed("sleep 600 & echo $!; wait"), soon())
        pid = int(session.read(soon()))
        began = time.monotonic()
        assert session.close() is None
        assert session.close() is None
        assert time.monotonic() - began < 60
    assert gone(pid)


def test_no_shell_is_an_error_of_that_host() -> None:
    """A machine without the shell is unreachable, by name."""
    with pytest.raises(Unreachable, match="local: start a shell"):
        LocalSession(HERE, ("/nonexistent/sh",))


@pytest.mark.parametrize("script", [f"a\n{END}\nb", "a\0b", f"{LONG}{END}\n"])
def test_a_script_that_cannot_be_framed_is_refused(script: str) -> None:
    """The END line and NUL cannot stand in a script."""
    with pytest.raises(ValueError, match="script"):
        framed(script)
