"""Root in one place: who is asked, and what happens where the answer is no."""

import subprocess
from pathlib import Path

import pytest

from rlxdeploy.facts.privilege import as_root_if_it_can, as_root_or

SCRIPT = 'echo "${AS:-myself} $*"'


class Tools:
    """A folder of programs before all others; `id` in it says that we are not root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.put("id", "echo 1000")

    def put(self, name: str, script: str) -> None:
        (self.folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / name).chmod(0o755)

    def sudo(self, answer: str) -> None:
        """Have a sudo that writes down what it is asked, and then does *answer*."""
        self.put("sudo", f'printf "%s\\n" "$*" >>{self.folder}/log; {answer}')

    def said(self, command: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env={"PATH": f"{self.folder}:/usr/bin:/bin", "LANG": "zh_CN.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    @property
    def asked(self) -> list[str]:
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(tmp_path)


def test_root_needs_no_sudo(tools: Tools) -> None:
    """Who logs in as root stays so, and sudo is not even asked."""
    tools.put("id", "echo 0")
    tools.sudo("exit 1")

    assert tools.said(as_root_or("echo no", SCRIPT, "a b", "c")) == "myself a b c\n"
    assert not tools.asked


def test_sudo_runs_the_script_where_it_asks_for_nothing(tools: Tools) -> None:
    """One question, one run, both with -n."""
    tools.sudo('shift; [ "$1" = true ] || AS=root exec "$@"')

    assert tools.said(as_root_or("echo no", SCRIPT, "a b", "c")) == "root a b c\n"
    assert [line.split()[:2] for line in tools.asked] == [["-n", "true"], ["-n", "/bin/sh"]]


def test_a_password_is_never_guessed(tools: Tools) -> None:
    """One question in any language, then the other way; sudo is not run again."""
    tools.sudo("echo 'sudo: a password is required' >&2; exit 1")

    assert tools.said(as_root_or("echo no; exit 1", SCRIPT)) == "no\n"
    assert tools.said(as_root_if_it_can(SCRIPT, "x")) == "myself x\n"
    assert tools.asked == ["-n true", "-n true"]


def test_a_host_without_sudo_goes_the_other_way(tools: Tools) -> None:
    """No sudo is no error of the question."""
    tools.put("sudo", "exit 127")

    assert tools.said(as_root_if_it_can(SCRIPT, "x")) == "myself x\n"
