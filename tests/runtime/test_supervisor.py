"""Process launch, with real processes under a real supervisor."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

PATIENCE_S = 15.0
ROOT = Path(__file__).resolve().parents[2]

NOTIFY = """
import os, socket, sys, time
def say(text):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(text.encode(), os.environ["NOTIFY_SOCKET"])
"""


class Rank:
    """One rank in a folder of its own; whatever it started is gone after the test."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.file = folder / "run" / "0.supervisor"
        self.log_file = folder / "log" / "0.log"
        (folder / "0.env").write_text('RANK="0"\nNOTE="a b $HOME"\n'.replace("$", "\\$"))

    def start(self, *argv: str, **changes: object) -> "subprocess.CompletedProcess[str]":
        process = {
            "format": 1,
            "job": "t",
            "rank": 0,
            "argv": list(argv),
            "workdir": str(self.folder),
            "env_file": str(self.folder / "0.env"),
            "restart": "on-failure",
            "ready": "exec",
            "join_timeout": 30,
            "restart_s": 0.05,
            "start_limit_interval_s": 60,
            "start_limit_burst": 20,
            "restart_prevent": [64, 65, 78],
            "stop_timeout_s": 5,
            "watchdog_s": None,
            "supervisor_file": str(self.file),
            "log_file": str(self.log_file),
            "plan": "p1",
            **changes,
        }
        path = self.folder / "0.json"
        path.write_text(json.dumps(process))
        return self.command("--file", str(path), "--release", "r1")

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "rlxdeploy.runtime.supervisor", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    @property
    def record(self) -> Dict[str, Any]:
        document: Dict[str, Any] = json.loads(self.file.read_text())
        return document

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def until(self, holds: Callable[[Dict[str, Any]], bool]) -> Dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            record = self.record
            if holds(record):
                return record
            time.sleep(0.02)
        raise AssertionError(f"waited in vain, last seen: {self.record}\n{self.log}")

    def over(self) -> Dict[str, Any]:
        record = self.until(lambda seen: seen["active"] in ("exited", "failed", "inactive"))
        wait_gone(record["supervisor_pid"])
        return record

    def stop(self) -> Dict[str, Any]:
        os.kill(self.record["supervisor_pid"], signal.SIGTERM)
        return self.over()


def wait_gone(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError(f"{pid} is still there")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def rank(tmp_path: Path) -> Iterator[Rank]:
    one = Rank(tmp_path)
    yield one
    if one.file.exists():
        record = one.record
        for pid in (record["supervisor_pid"], record["pid"]):
            if pid and is_running(pid):
                os.kill(pid, signal.SIGKILL)
                wait_gone(pid)


def python(code: str) -> List[str]:
    return [sys.executable, "-c", code]


def test_the_environment_is_the_file_over_a_small_base(rank: Rank) -> None:
    """The process sees the file's bytes and a service's PATH, and nothing of the starter's."""
    os.environ["STRAY"] = "1"
    try:
        rank.start(*python("import os, json; print(json.dumps(dict(os.environ)))"))
    finally:
        del os.environ["STRAY"]
    rank.over()

    seen = json.loads(next(line for line in rank.log.splitlines() if line.startswith("{")))
    assert seen["NOTE"] == "a b $HOME"
    assert seen["PATH"].startswith("/usr/local/sbin:")
    assert {"HOME", "USER", "LOGNAME", "SHELL", "NOTIFY_SOCKET"} < set(seen)
    assert not {"STRAY", "PWD", "WATCHDOG_USEC"} & set(seen)


def test_argv_is_literal(rank: Rank) -> None:
    """No shell reads the arguments."""
    words = ["$HOME", "a  b", "*", "'", "", "%h"]
    rank.start(*python("import sys; print(sys.argv[1:])"), *words)
    rank.over()

    assert str(words) in rank.log


def test_the_starter_leaves_nothing_of_its_own_behind(rank: Rank) -> None:
    """The supervisor has a session of its own, stands in / and holds none of our pipes."""
    code = "import os, time; print(os.getcwd(), os.getsid(0) == os.getpid(), flush=True)"
    started = rank.start(*python(f"{code}; time.sleep(60)"))
    record = rank.until(lambda _: "True" in rank.log)
    supervisor = record["supervisor_pid"]

    assert (started.returncode, started.stdout, started.stderr) == (0, "", "")
    assert f"{rank.folder} True" in rank.log
    assert os.getsid(supervisor) not in (os.getsid(0), record["pid"])
    if Path("/proc/self/fd").exists():
        held = [str(fd.readlink()) for fd in Path(f"/proc/{supervisor}/fd").iterdir()]
        assert min(held).startswith("/dev/null")
        assert held.count(str(rank.log_file)) == 3
        assert Path(f"/proc/{supervisor}/cwd").readlink() == Path("/")
    rank.stop()


def test_a_record_names_both_processes_and_their_starts(rank: Rank) -> None:
    """What a reader needs to tell a living process from a later one of the same number."""
    rank.start(*python("import time; time.sleep(60)"))
    record = rank.record

    assert set(record) >= {"format", "rank", "supervisor_start", "since", "plan", "release"}
    assert (record["active"], record["ready"]) == ("active", False)
    assert (record["plan"], record["release"], record["restarts"]) == ("p1", "r1", 0)
    assert abs(record["since"] - time.time()) < PATIENCE_S
    stat = Path(f"/proc/{record['supervisor_pid']}/stat")
    if stat.exists():
        assert record["supervisor_start"] == stat.read_text().rpartition(")")[2].split()[19]
    assert rank.file.read_text().count("\n") == 1
    rank.stop()


def test_ready_is_what_the_process_says(rank: Rank) -> None:
    """A rank under notify is activating until READY=1, and its STATUS is shown.

    Which process has said READY stays to be read when it is gone.
    """
    code = "say('STATUS=lacks 2, 5'); time.sleep(0.3); say('READY=1\\nSTATUS=joined')"
    rank.start(*python(f"{NOTIFY}\n{code}; time.sleep(60)"), ready="notify")
    before = rank.until(lambda seen: bool(seen["status"]))
    after = rank.until(lambda seen: bool(seen["ready"]))

    assert (before["active"], before["status"]) == ("activating", "lacks 2, 5")
    assert (after["active"], after["status"]) == ("active", "joined")
    assert (before["joined"], after["joined"]) == ("", f"{after['pid']} {after['pid_start']}")
    stopped = rank.stop()
    assert (stopped["ready"], stopped["joined"]) == (False, after["joined"])


def test_a_command_is_ready_once_it_has_lived_five_seconds(rank: Rank) -> None:
    """Under exec nobody says READY; staying alive is all there is to see."""
    start = time.monotonic()
    rank.start(*python("import time; time.sleep(60)"))
    rank.until(lambda seen: bool(seen["ready"]))

    assert time.monotonic() - start >= 5
    rank.stop()


def test_a_private_socket_stands_in_for_a_path_too_long(tmp_path: Path) -> None:
    """NOTIFY_SOCKET works in a folder whose name no socket address holds, and is gone after."""
    rank = Rank(tmp_path / ("d" * 90))
    rank.start(*python(f"{NOTIFY}\nprint(os.environ['NOTIFY_SOCKET']); say('READY=1')"))
    rank.over()
    path = Path(rank.log.splitlines()[1])

    assert path.parts[:2] == ("/", "tmp")
    assert not path.parent.exists()


ENDINGS = {
    "exit 0 is finished": ("exit(0)", "on-failure", ("exited", 0, 0)),
    "no restart: failed": ("exit(3)", "no", ("failed", 3, 0)),
    "a wrong inventory is not tried again": ("exit(78)", "always", ("failed", 78, 0)),
    "SIGTERM is clean": ("import os; os.kill(os.getpid(), 15)", "no", ("exited", 143, 0)),
    "SIGKILL is none": ("import os; os.kill(os.getpid(), 9)", "on-failure", ("failed", 137, 2)),
    "a failure is tried again": ("exit(75)", "on-failure", ("failed", 75, 2)),
    "always means after success too": ("exit(0)", "always", ("failed", 0, 2)),
}


@pytest.mark.parametrize(("code", "restart", "expected"), ENDINGS.values(), ids=ENDINGS.keys())
def test_an_ending_leads_where_systemd_would_lead_it(
    rank: Rank, code: str, restart: str, expected: Tuple[str, int, int]
) -> None:
    """Restart=, RestartPreventExitStatus= and StartLimitBurst= mean what systemd means."""
    rank.start(*python(code), restart=restart, start_limit_burst=2)
    record = rank.over()

    assert (record["active"], record["exit_status"], record["restarts"]) == expected
    assert record["pid"] == 0
    assert not list(rank.file.parent.glob("*.notify"))


UNSTARTABLE: Dict[str, Any] = {
    "no such program": ({"argv": ["/nowhere/x"]}, 203, "/nowhere/x"),
    "no such folder": ({"workdir": "/nowhere"}, 200, "/nowhere"),
    "no environment file": ({"env_file": "/nowhere/env"}, 78, "/nowhere/env"),
}


@pytest.mark.parametrize(
    ("changes", "status", "named"), UNSTARTABLE.values(), ids=UNSTARTABLE.keys()
)
def test_what_cannot_start_says_why(
    rank: Rank, changes: Dict[str, Any], status: int, named: str
) -> None:
    """The log names the file at fault, the record has systemd's number for it."""
    rank.start(*python("pass"), restart="no", **changes)
    record = rank.over()

    assert (record["active"], record["exit_status"]) == ("failed", status)
    assert named in rank.log


# Not by print, which fails in a handler while the program itself is printing.
STUBBORN = "import os, signal, time; signal.signal(15, lambda *_: os.write(1, b'no\\n'))"


def test_a_stop_kills_what_does_not_heed_it(rank: Rank) -> None:
    """After the stop timeout the whole group dies, and the record says how."""
    loop = "print('up', flush=True)\nwhile True: time.sleep(1)"
    rank.start(*python(f"{STUBBORN}\n{loop}"), stop_timeout_s=2.5)
    rank.until(lambda _: "up\n" in rank.log)
    record = rank.stop()

    assert "no\n" in rank.log
    assert (record["active"], record["exit_status"]) == ("failed", 137)
    assert "killed 2.5 s after SIGTERM" in record["status"]


def test_a_stop_takes_the_children_along(rank: Rank) -> None:
    """The main process gets SIGTERM; what it leaves in its group is killed at once."""
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c',"
        " 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)'])\n"
        "print('child', child.pid, flush=True); time.sleep(60)"
    )
    rank.start(*python(code))
    rank.until(lambda _: "child" in rank.log)
    child = int(rank.log.split("child ")[1].split()[0])
    record = rank.stop()
    wait_gone(child)

    assert (record["active"], record["exit_status"]) == ("inactive", 143)


def test_a_silent_watchdog_ends_the_rank(rank: Rank) -> None:
    """WATCHDOG_USEC is set, and a rank that stops feeding it is ended and counted as failed."""
    code = f"{NOTIFY}\nprint(os.environ['WATCHDOG_USEC'], flush=True); say('READY=1')"
    rank.start(
        *python(f"{code}\nfor _ in range(4): time.sleep(0.1); say('WATCHDOG=1')\ntime.sleep(60)"),
        ready="notify",
        watchdog_s=2.5,
        restart="no",
    )
    record = rank.over()

    assert (record["active"], record["exit_status"]) == ("failed", 134)
    assert record["status"] == "no WATCHDOG=1 for 2.5 s"
    assert "2500000\n" in rank.log


def test_one_rank_has_one_supervisor(rank: Rank) -> None:
    """A second start is refused with the first one's file, and changes nothing."""
    rank.start(*python("import time; time.sleep(60)"))
    before = rank.record
    second = rank.start(*python("pass"))

    assert second.returncode == 1
    assert str(rank.file) in second.stderr
    assert rank.record == before
    rank.stop()


MALFORMED: Dict[str, Any] = {
    "not JSON": ("{", "no JSON"),
    "another format": ('{"format": 2}', "format 1"),
    "a key is missing": ('{"format": 1, "rank": 0}', "argv"),
}


@pytest.mark.parametrize(("text", "named"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_process_file_that_is_none_is_refused(rank: Rank, text: str, named: str) -> None:
    """Nothing starts, and the message has the file and the fault."""
    path = rank.folder / "x.json"
    path.write_text(text)
    done = rank.command("--file", str(path), "--release", "r1")

    assert done.returncode == 78
    assert str(path) in done.stderr
    assert named in done.stderr


@pytest.mark.parametrize(
    ("name", "value"), [("argv", []), ("restart", "maybe"), ("rank", True), ("watchdog_s", 0)]
)
def test_a_wrong_value_is_named(rank: Rank, name: str, value: object) -> None:
    """A value outside its kind is refused with its name."""
    done = rank.start(*python("pass"), **{name: value})

    assert done.returncode == 78
    assert f"{name} may not be {value!r}" in done.stderr
