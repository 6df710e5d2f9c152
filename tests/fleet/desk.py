"""A person at the controller: an inventory, the command `rlxdeploy`, and what hosts show of it."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until

RUN_S = 100.0
HEALED_S = 60.0
REST_S = 5.0

_HEAD = """\
[job]
name = "{job}"
heap_mb = 1
{keys}
"""

# What a host writes by itself, whoever comes and goes: logs, temporary files, what systemd keeps
# of its last boot, and what a login leaves of itself.
_OF_ITS_OWN = (
    *("/var/log", "/tmp", "/var/tmp", "/root/.bash_history"),  # noqa: S108 - a host's own
    *("/var/lib/systemd/random-seed", "/var/lib/systemd/timers", "/var/lib/systemd/timesync"),
)
_OF_LOGINS = (
    *("/run/systemd", "/run/user", "/run/log", "/run/sudo", "/run/utmp", "/run/udev"),
    "/run/motd.dynamic",
)

# The processes of logins, and those that ask or wait to ask again.
_SESSIONS = (
    *(r"\(sd-pam\)", "sshd[:-].*", ".*systemd --user", ".*dbus-daemon --session.*"),
    *("sh -c .*", "ps -eo .*", "grep -vE .*", "sed .*", "sleep 1"),
)

# A process that is just about to run its program has a name in brackets, one of systemd's a name in
# parentheses; what is there to stay has run it at one of the next looks.  Without systemd a host
# has its container's own init, which is called so for good.
_ABOUT_TO_RUN = re.compile(r"process \S+ +(?!\(sd-stubinit\))[\[(].*[\])]")

# All that can be left behind, one thing a line: files with owner, group, mode, size and content,
# units, timers, processes, ports, lingering.  /usr is too big for that; its layer is asked.
_FOOTPRINT = r"""
about() {{ find "$@" -type f -printf 'file %m %u:%g %s %p\n' \
  -o -type l -printf 'link %u:%g %p -> %l\n' -o -printf '%y %m %u:%g %p\n'; }}
about / -xdev \( -path /usr {own} \) -prune -o
about /run -xdev \( -false {logins} \) -prune -o
find / -xdev \( -path /usr {own} \) -prune -o -type f -exec sha256sum {{}} + | sed 's/^/content /'
find /run/user -path '/run/user/*/systemd' -prune -o -path '*rlx*' -printf 'run %m %u:%g %p\n'
ls /var/lib/systemd/linger 2>/dev/null | sed 's/^/linger /'
ps -eo user,args --no-headers | grep -vE '{sessions}' | sed 's/^/process /'
ss -Hlntu | awk '{{ print "port", $1, $5 }}'
ss -Hlx | awk '/rlx/ {{ print "socket", $5 }}'
if [ -d /run/systemd/system ]; then
  systemctl list-unit-files --no-legend --plain 'rlx*' | sed 's/^/unit /'
  systemctl list-units --all --no-legend --plain 'rlx*' | sed 's/^/loaded /'
  systemctl list-timers --all --no-legend --plain | awk '{{ print "timer", $(NF - 1) }}'
fi
"""

# What a second apply must not touch: the processes, and every file of ours with inode and mtime.
_STANDING = r"""
systemctl show -p Id,MainPID,NRestarts 'rlx-*@*'
for place in /var/lib/rlx /etc/systemd/system /run/rlx; do
  find "$place" -path '*rlx*' ! -name '*.state' -printf '%i %T@ %p\n'
done
"""


class Desk:
    """One job's inventory in a folder of its own in the controller's home."""

    def __init__(self, fleet: Fleet, job: str) -> None:
        self.fleet = fleet
        self.job = job
        self.folder = fleet.home / job
        self.folder.mkdir(exist_ok=True)

    def write(self, nodes: Iterable[str], *, job: str = "", tables: str = "") -> None:
        """Write the inventory: keys of `[job]`, other tables, and the keys of each node."""
        head = _HEAD.format(job=self.job, keys=job)
        entries = "".join(f"[[node]]\n{node}\n" for node in nodes)
        (self.folder / "inventory.toml").write_text(f"{head}{tables}\n{entries}")

    def write_hosts(self, hosts: Iterable[Host], *, job: str = "", tables: str = "") -> None:
        """Write the inventory with one node a host, reached by its name."""
        self.write((f'ssh = "{host.name}"' for host in hosts), job=job, tables=tables)

    def run(
        self, *arguments: str, code: int | None = 0, timeout: float = RUN_S
    ) -> subprocess.CompletedProcess[str]:
        """Run `rlxdeploy` on the inventory, and see it end with *code* (None: with any)."""
        argv = ("rlxdeploy", arguments[0], str(self.folder / "inventory.toml"), *arguments[1:])
        ran = self.fleet.controller(argv, timeout=timeout)
        said = f"{' '.join(arguments)}: exit {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        assert code in (None, ran.returncode), said
        return ran

    def json(self, *arguments: str, code: int | None = 0) -> dict[str, Any]:
        """Return the document that the command prints."""
        document: dict[str, Any] = json.loads(self.run(*arguments, "--json", code=code).stdout)
        return document

    def ranks(self) -> list[dict[str, Any]]:
        """Return every rank as `status` has it now."""
        ranks: list[dict[str, Any]] = self.json("status", code=None)["ranks"]
        return ranks

    def is_whole(self, world: int) -> str:
        """Say what lacks to be *world* ranks with one digest in one epoch."""
        return to_be_whole(self.ranks(), world)

    def await_whole(
        self, world: int, *, other_than: str, within: float = HEALED_S
    ) -> list[dict[str, Any]]:
        """Wait until all ranks are in one group that has formed anew, and return them."""
        ranks: list[dict[str, Any]] = []

        def lacking() -> str:
            ranks[:] = self.ranks()
            return to_be_whole(ranks, world, other_than)

        wait_until(lacking, within)
        return ranks

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Start a command that goes on until it is interrupted, and see it end so."""
        argv = ("rlxdeploy", arguments[0], str(self.folder / "inventory.toml"), *arguments[1:])
        process = self.fleet.spawn(argv)
        try:
            yield process
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=RUN_S)
            assert process.returncode == 130
        finally:
            process.kill()
            process.communicate()

    def watch_whole(self, world: int, *, other_than: str) -> list[dict[str, Any]]:
        """Do what `await_whole` does, by what one `status --watch --json` shows line by line."""
        deadline, lacking, ranks = time.monotonic() + HEALED_S, "a line", []
        with self.running("status", "--watch", "--json") as process:
            assert process.stdout is not None
            while lacking:
                assert time.monotonic() < deadline, lacking
                ranks = json.loads(process.stdout.readline())["ranks"]
                lacking = to_be_whole(ranks, world, other_than)
        return ranks


def to_be_whole(ranks: Sequence[Mapping[str, Any]], world: int, other_than: str = "") -> str:
    """Say what *ranks* lack to be *world* with one digest in one epoch, not *other_than*."""
    joined = [rank for rank in ranks if rank["joined"]]
    if len(joined) != world or len(ranks) != world:
        return f"{len(joined)} of {len(ranks)} ranks joined, {world} wanted: {ranks}"
    same = {(rank["digest"], rank["epoch"]) for rank in ranks}
    if len(same) == 1 and all(*same) and other_than not in {epoch for _, epoch in same}:
        return ""
    return f"one digest and a new epoch: {same}"


def logins(host: Host) -> int:
    """Return how often sshd has let somebody in."""
    return host.sshd_log().count("Accepted publickey")


@contextmanager
def one_login_each(hosts: Sequence[Host]) -> Iterator[None]:
    """See that whatever is run within comes to each host once, and no more."""
    before = [logins(host) for host in hosts]
    yield
    assert [logins(host) for host in hosts] == [count + 1 for count in before]


def footprint(host: Host) -> set[str]:
    """Return all that lies, runs and listens on *host*, logs and temporary files left out."""
    own, logins = (
        " ".join(f"-o -path {path}" for path in paths) for paths in (_OF_ITS_OWN, _OF_LOGINS)
    )
    asked = _FOOTPRINT.format(own=own, logins=logins, sessions=f" ({'|'.join(_SESSIONS)})$")

    seen = set[str]()

    def about_to_run() -> str:
        seen.clear()
        seen.update(host.exec(("sh", "-c", asked)).stdout.splitlines(), host.written("/usr"))
        return ", ".join(filter(_ABOUT_TO_RUN.fullmatch, seen))

    wait_until(about_to_run, REST_S)
    return seen


def standing(host: Host) -> str:
    """Return the main processes of the job's units, and the identity of each of our files."""
    return host.exec(("sh", "-c", _STANDING)).stdout


def footprints(hosts: Iterable[Host]) -> Mapping[str, set[str]]:
    """Return the footprint of each host by its name."""
    every = [*hosts]
    with ThreadPoolExecutor(len(every)) as pool:
        return dict(zip([host.name for host in every], pool.map(footprint, every), strict=True))


def differences(before: Mapping[str, set[str]], hosts: Sequence[Host]) -> list[str]:
    """Return what of each host is not as it was, or was not there *before*.

    A session that has just ended may still have its last process to lose; what is there after
    `REST_S` is there to stay.
    """
    deadline = time.monotonic() + REST_S
    while True:
        now = footprints(hosts)
        found = [f"{name}: {line}" for name in now for line in sorted(now[name] ^ before[name])]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(REST_S / 10)
