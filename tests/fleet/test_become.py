"""A password for sudo: typed once, tried once a host, and seen by nobody."""

import base64
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tests.terminal
from tests.fleet.desk import Desk, differences, footprints
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host

# What a shell, a quoted word or a line-wise reader would change.
NEEDLE = "Sw0rd-8842"
PASSWORD = f"{NEEDLE} '\"$x\\n` #"
# A secret of the job, as a person has it in the environment.
TOKEN = "t0ken-3391"  # noqa: S105 - nobody's
ENV = {"LAB_TOKEN": TOKEN}
# The forms in which the two could lie about; no form is a part of another word by chance.
FORMS = (
    NEEDLE,
    TOKEN,
    base64.b64encode(TOKEN.encode()).decode().rstrip("=")[:-1],
    TOKEN.encode().hex(),
    hashlib.sha256(TOKEN.encode()).hexdigest(),
)
PROMPT = "Password for sudo on the hosts: "
ASKS = '[ssh]\nuser = "asks"'

# Counts failures as hosts do that lock accounts after some of them.
_FAILLOCK = "auth [default=die] pam_faillock.so authfail deny=30"
_PATTERN, _ANY = "/root/pattern", "/root/any-pattern"
_PROCESSES = "/proc/[0-9]*/cmdline /proc/[0-9]*/environ"
_WATCH = f"""
while sleep 0.05; do
  grep -laf {_PATTERN} {_PROCESSES} 2>/dev/null
  grep -laf {_ANY} /proc/[0-9]*/cmdline 2>/dev/null
done </dev/null &
cat; kill $!
"""
# A rank's own environment is where a secret belongs, its supervisor's or a shell's is not.
_HELD = f"""
grep -laf {_PATTERN} {_PROCESSES} 2>/dev/null
grep -laf {_ANY} /proc/[0-9]*/cmdline 2>/dev/null
for environ in $(grep -laf {_ANY} /proc/[0-9]*/environ 2>/dev/null); do
  grep -q 'rlx-asked@' "${{environ%/*}}/cgroup" || echo "$environ"
done
ps axww | grep -f {_ANY}
journalctl -b --no-pager | grep -f {_ANY}
find /etc /run /var /root /home /tmp -xdev -type f -size -2048k \\
  -exec grep -l -f {_ANY} {{}} + | grep -v pattern$ | xargs stat -c '%a %U %n'
true
"""


@pytest.fixture(scope="module")
def three(fleet: Fleet) -> Iterator[list[Host]]:
    """Give one host of each release, whose user asks speaks Chinese and has a hard password."""
    with fleet.lend(3) as hosts:
        for host in hosts:
            host.write("/etc/environment", 'LANG="zh_CN.UTF-8"\nLANGUAGE="zh_CN"\n')
            host.write(_PATTERN, f"{NEEDLE}\n", mode=0o600)
            host.write(_ANY, "\n".join(FORMS) + "\n", mode=0o600)
            set_password(host, PASSWORD)
            count_failures(host)
            # sudo keeps in mind whom it has lectured; then nothing more is left of it.
            run = "IFS= read -r p; printf '%s\\n' \"$p\" | sudo -S -k -p '' true"
            ssh = ("ssh", "-l", "asks", host.name, f"sh -c {shell_word(run)}")
            assert fleet.controller(ssh, stdin=f"{PASSWORD}\n").returncode == 0
        yield hosts


def shell_word(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def set_password(host: Host, password: str) -> None:
    host.exec(("chpasswd",), stdin=f"asks:{password}\n")


def count_failures(host: Host) -> None:
    stack = host.at("/etc/pam.d/common-auth").read_text()
    lines = []
    for line in stack.splitlines():
        lines.append(line.replace("success=1", "success=2"))
        lines += [_FAILLOCK] if "pam_unix.so" in line and line.startswith("auth") else []
    host.write("/etc/pam.d/common-auth", "\n".join(lines) + "\n")


def failures(host: Host) -> int:
    """Return how many failures the host counts against the user, and forget them."""
    rows = host.exec(("faillock", "--user", "asks")).stdout.splitlines()[2:]
    host.exec(("faillock", "--user", "asks", "--reset"))
    return len(rows)


def typed(
    desk: Desk, *arguments: str, password: str = PASSWORD, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run `rlxdeploy` on a terminal, with somebody who types *password* when asked."""
    command = ("rlxdeploy", arguments[0], str(desk.folder / "inventory.toml"), *arguments[1:])
    driver = (sys.executable, tests.terminal.__file__, PROMPT)
    argv = (*driver, *command, "-K")
    ran = desk.fleet.controller(argv, stdin=f"{password}\n", timeout=100, env=ENV)
    said = f"{' '.join(arguments)}: exit {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    assert ran.returncode == code, said
    assert ran.stderr.count(PROMPT) == 1, said
    assert [one for one in FORMS if one in said] == []
    return ran


def test_a_password_makes_a_user_root_through_a_jobs_life(fleet: Fleet, three: list[Host]) -> None:
    """Units are the system's; sudo is told at every step, and counts no failure at any.

    Nothing on a host shows the password; a secret stands in the ranks' own files alone, which root
    reads, and in no plan, journal, process list or log.
    """
    desk = Desk(fleet, "asked")
    desk.write_hosts(three, job='env.TOKEN = { from = "env:LAB_TOKEN" }', tables=ASKS)
    before = footprints(three)
    watching = [fleet.spawn(("ssh", host.name, _WATCH)) for host in three]
    planned = typed(desk, "plan", "--out", str(desk.folder / "plan.json"))
    assert planned.stdout.count("  systemd  ") == len(three)
    applied = typed(desk, "apply", "--yes")
    seen = [watcher.communicate(timeout=60)[0] for watcher in watching]

    assert "asked: 3 of 3 ranks joined" in applied.stdout
    assert "Nothing to change." in typed(desk, "apply", "--yes").stdout
    unread = "asks may not read /var/lib/rlx/asked/deployment.json"
    again = fleet.controller(("rlxdeploy", "plan", str(desk.folder / "inventory.toml")), env=ENV)
    assert (again.returncode, again.stderr.count(unread)) == (1, len(three))
    status = typed(desk, "status")
    assert "asked: 3 of 3 ranks joined, digests equal" in status.stdout
    assert typed(desk, "logs").stdout.count("joined as rank") >= len(three)
    typed(desk, "restart")
    held = [host.exec(("sh", "-c", _HELD), timeout=90).stdout for host in three]
    release = desk.ranks()[0]["release"]
    files = [path for path in Path(fleet.home).rglob("*") if path.is_file()]
    kept = [path for path in files if any(one.encode() in path.read_bytes() for one in FORMS)]
    typed(desk, "destroy", "--yes")

    assert seen == [""] * len(three), "no process had it as an argument or in its environment"
    home = "/var/lib/rlx/asked/releases"
    assert held == [f"600 root {home}/{release}/env/{rank}.env\n" for rank in range(len(three))]
    assert kept == []
    assert differences(before, three) == []
    assert [failures(host) for host in three] == [0] * len(three)


def test_a_wrong_password_is_one_failure_and_one_message(fleet: Fleet, three: list[Host]) -> None:
    """It is tried once a command on that host, however often the command looks; others answer."""
    desk = Desk(fleet, "refused")
    desk.write_hosts(three, tables=ASKS)
    wrong, *others = three
    set_password(wrong, "another")
    try:
        planned = typed(desk, "plan", code=4)
        assert planned.stderr.count("sudo does not take the password") == 1
        assert f"{wrong.name}" in planned.stderr
        assert [failures(host) for host in three] == [1, 0, 0]

        status = typed(desk, "status", code=4)
        assert status.stderr.count("sudo does not take the password") == 1
        assert not any(f"{host.name}: " in status.stderr for host in others)
        assert [failures(host) for host in three] == [1, 0, 0]

        typed(desk, "wait", "--timeout", "4", code=1)
        assert [failures(host) for host in three] == [1, 0, 0]
    finally:
        set_password(wrong, PASSWORD)


def test_who_needs_no_password_is_told_none(fleet: Fleet, three: list[Host]) -> None:
    """Root, a user whom sudo asks, and one whom it does not ask are ranks of one group."""
    desk = Desk(fleet, "mixed")
    users = dict(zip(("root", "asks", "ops"), three, strict=True))
    desk.write(f'ssh = "{user}@{host.name}"' for user, host in users.items())
    typed(desk, "apply", "--yes")
    assert "mixed: 3 of 3 ranks joined" in typed(desk, "status").stdout
    typed(desk, "destroy", "--yes")
    assert [failures(host) for host in three] == [0, 0, 0]


def test_who_may_not_use_sudo_is_told_so_in_sudos_words(fleet: Fleet, three: list[Host]) -> None:
    """A person who gives a password is not left with ranks of another launch in silence."""
    desk = Desk(fleet, "may-not")
    desk.write_hosts(three[:1], tables='[ssh]\nuser = "nosudo"')
    three[0].exec(("chpasswd",), stdin=f"nosudo:{PASSWORD}\n")
    planned = typed(desk, "plan", code=4)

    assert "become root: sudo says: nosudo is not in the sudoers file" in planned.stderr
