"""Root in one place: who is asked, and what happens where the answer is no."""

import subprocess
from pathlib import Path

import pytest

from rlxdeploy.edge.become import with_password
from rlxdeploy.edge.session import BOOTSTRAP, framed
from rlxdeploy.facts.privilege import as_root_if_it_can, as_root_or

SCRIPT = 'echo "${AS:-myself} $*"'


# A sudo that takes one password, and as the real one asks again after a wrong one.
STRICT_SUDO = """
case $1 in -n) echo 'sudo: 需要密码' >&2; exit 1;; esac
prompt=$4; shift 4
for turn in 1 2 3; do
  printf '%s' "$prompt" >&2
  IFS= read -r typed || { echo counted >>$log; echo 'no password' >&2; exit 1; }
  [ "$typed" != right ] || { AS=root exec "$@"; }
  echo counted >>$log; echo 'Sorry, try again.' >&2
done
exit 1
"""
FREE_SUDO = 'shift; AS=root exec "$@"'


class Tools:
    """A folder of programs before all others; `id` in it says that we are not root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {"PATH": f"{folder}:/usr/bin:/bin", "LANG": "zh_CN.UTF-8"}
        self.put("id", "echo 1000")

    def put(self, name: str, script: str) -> None:
        (self.folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / name).chmod(0o755)

    def sudo(self, answer: str) -> None:
        """Have a sudo that writes down what it is asked, and then does *answer*."""
        log = self.folder / "log"
        self.put("sudo", f'log={log}; printf "%s\\n" "$*" | head -n 1 >>$log; {answer}')

    def said(self, command: str) -> str:
        return self.run(["/bin/sh", "-c", command]).stdout

    def sent(self, script: str, password: str, *, payload: str = "", shell: list[str]) -> str:
        """Return what *script* says on a session that brings *password*."""
        data = with_password(framed(script) + payload.encode(), password)
        return self.run([*shell, "-c", BOOTSTRAP], data.decode()).stdout

    def run(self, argv: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=25,
            check=False,
        )

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


def test_a_password_makes_the_script_root_and_is_not_in_its_input(
    tools: Tools, shell: list[str]
) -> None:
    """What follows the script on stdin arrives whole, right behind what sudo has read."""
    tools.sudo(STRICT_SUDO)
    script = as_root_or("echo no", f"{SCRIPT}; cat")

    assert tools.sent(script, "right", payload="GO\n", shell=shell) == "root \nGO\n"
    assert "counted" not in tools.asked


def test_a_password_that_nobody_asks_for_is_not_in_the_input_either(
    tools: Tools, shell: list[str]
) -> None:
    """Where sudo asks for none, and for root: the script reads what was meant for it."""
    script = as_root_or("echo no", f"{SCRIPT}; cat")
    tools.sudo(FREE_SUDO)
    assert tools.sent(script, "right", payload="GO\n", shell=shell) == "root \nGO\n"

    tools.put("id", "echo 0")
    assert tools.sent(script, "right", payload="GO\n", shell=shell) == "myself \nGO\n"


def test_a_wrong_password_is_tried_once(tools: Tools, shell: list[str]) -> None:
    """Asking again, sudo is killed: even an end of input would count as a second failure."""
    tools.sudo(STRICT_SUDO)
    script = as_root_or('echo "no: $rlx_why"; cat', SCRIPT)
    said = tools.sent(script, "wrong", payload="GO\n", shell=shell)

    assert said == "no: sudo does not take the password\nGO\n"
    assert tools.asked.count("counted") == 1


def test_what_sudo_says_of_itself_is_handed_on(tools: Tools, shell: list[str]) -> None:
    """Who may not use sudo at all reads that, and not that the password was wrong."""
    tools.sudo('[ "$1" = -n ] || echo "asks is not in the sudoers file." >&2; exit 1')
    script = as_root_or('echo "no: $rlx_why"', SCRIPT)

    assert tools.sent(script, "right", shell=shell) == (
        "no: sudo says: asks is not in the sudoers file.\n"
    )


def test_a_question_is_asked_as_root_and_has_no_input(tools: Tools, shell: list[str]) -> None:
    """Neither what follows the script nor the password is there for it to read."""
    tools.sudo(STRICT_SUDO)
    ask = as_root_if_it_can(f"{SCRIPT}; cat", "x")

    assert tools.sent(f"({ask})\n({ask})\n", "right", payload="GO\n", shell=shell) == (
        "root x\nroot x\n"
    )


def test_no_child_inherits_the_password(tools: Tools, shell: list[str]) -> None:
    """It is in no environment and no argument, even where the login exports such a name."""
    tools.sudo(STRICT_SUDO)
    show = "cat /proc/self/environ /proc/self/cmdline /proc/$PPID/environ /proc/$PPID/cmdline"
    tools.environ["rlx_password"] = "theirs"  # noqa: S105 - a name in a login's environment
    said = tools.sent(as_root_or("echo no", show), "right", shell=shell)

    assert "AS=root" in said
    assert "right" not in said
