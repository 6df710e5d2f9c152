"""`--ask-become-pass` at the command line: who is asked, and what is refused."""

import subprocess
import sys

import pytest

import tests.terminal
from tests.cli.desk import COMMAND, Desk

PROMPT = "Password for sudo on the hosts: "
USAGE = 64
COMMANDS = {
    "plan": (),
    "apply": ("--yes",),
    "status": (),
    "logs": (),
    "wait": (),
    "stop": (),
    "restart": (),
    "destroy": ("--yes",),
    "resolve": (),
    "probe": (),
    "doctor": (),
    "unlock": (),
}


def typed(desk: Desk, line: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command on a terminal where somebody types *line* at the prompt."""
    argv = [sys.executable, tests.terminal.__file__, PROMPT, str(COMMAND), *arguments]
    return subprocess.run(
        argv,
        cwd=desk.lab,
        env=desk.environ,
        input=f"{line}\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(("command", "more"), COMMANDS.items(), ids=COMMANDS.keys())
def test_without_a_terminal_nobody_is_asked(
    desk: Desk, command: str, more: tuple[str, ...]
) -> None:
    """Every command that reaches hosts refuses at once, and says what to do instead."""
    desk.pair()
    done = desk.run(command, *more, "--ask-become-pass", "--json")

    assert done.code == USAGE, done
    assert "there is no terminal to ask for a password on" in done.document["error"]["message"]
    assert "NOPASSWD" in done.err


def test_the_password_is_typed_unseen_and_once(desk: Desk) -> None:
    """It is not echoed, and stdout carries the one document all the same."""
    desk.pair()
    done = typed(desk, "hunter2", "plan", "-K", "--json")

    assert done.returncode == 0, done
    assert done.stderr.count(PROMPT) == 1
    assert "hunter2" not in done.stdout + done.stderr
    assert '"format_version"' in done.stdout.splitlines()[1]


def test_what_cannot_be_used_is_refused_before_any_host_is_asked(desk: Desk) -> None:
    """No password at all, and one that `become = "none"` says nobody may be told."""
    desk.pair()
    nothing = typed(desk, "", "plan", "-K")
    desk.pair(node='\n[ssh]\nbecome = "none"')
    forbidden = typed(desk, "hunter2", "plan", "-K")

    assert (nothing.returncode, forbidden.returncode) == (USAGE, USAGE)
    assert "error: no password was given" in nothing.stderr
    assert '[ssh] become = "none" forbids it' in forbidden.stderr
