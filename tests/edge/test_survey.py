"""The survey of a real machine, this one, through the shells it has."""

import hashlib
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rlxdeploy.edge.local import LocalSession, open_local
from rlxdeploy.edge.session import OpenSession
from rlxdeploy.edge.survey import SurveyLimits, survey, survey_hosts
from rlxdeploy.errors import Refused, Unreachable
from rlxdeploy.facts.script import Patience
from rlxdeploy.model.codec import dump_survey, load_survey
from rlxdeploy.model.host import Host
from rlxdeploy.model.survey import HostFacts
from rlxdeploy.model.targets import Enquiry, Target, Targets

HERE = Host("local")
SHELLS = {
    name: command
    for name, command in {
        "sh": ("/bin/sh",),
        "dash": ("dash",),
        "bash": ("bash",),
        "busybox": ("busybox", "ash"),
    }.items()
    if shutil.which(command[0])
}
# A survey of this machine takes a fifth of this; the rest is for a busy test machine.
QUICK = SurveyLimits(patience=Patience(quick=5.0, slow=5.0))


def over(*shell: str) -> OpenSession:
    return lambda host, _: LocalSession(host, shell)


def targets(enquiry: Enquiry) -> Targets:
    return Targets((Target(HERE, enquiry),))


def ask(
    enquiry: Enquiry, open_session: OpenSession = open_local, limits: SurveyLimits = QUICK
) -> HostFacts:
    outcomes = survey_hosts(targets(enquiry), open_session, limits)
    return outcomes.required()["local"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, so that no real job of this machine shows."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return tmp_path


def program(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS.keys())
def test_this_machine_is_told_through_every_shell(shell: tuple[str, ...], home: Path) -> None:
    """Each shell gives the same facts, which are those that Python knows of this machine."""
    facts = ask(
        Enquiry("demo", programs=("sh", "no-such"), folders=("/", f"{home}/not/yet")), over(*shell)
    )
    hardware, system = facts.hardware, facts.platform

    assert facts.unanswered == ()
    assert system.hostname == socket.gethostname()
    assert (system.os, system.arch) == (platform.system().lower(), platform.machine())
    assert (system.uid, system.home) == (os.getuid(), str(home))
    assert system.data_home == f"{home}/.local/share"
    assert os.access(system.programs["sh"], os.X_OK)
    assert system.programs["no-such"] == ""
    assert f"{home}/.local/bin" in system.searched
    assert abs(system.clock - time.time()) < 60
    assert 1 <= hardware.cores <= (os.cpu_count() or 1)
    assert 0 < hardware.ram_avail <= hardware.ram_total
    assert set(hardware.disk_free) == {"/", f"{home}/not/yet"}
    assert hardware.devices[0].device == "cpu"
    assert "127.0.0.1/8" in [a for i in facts.network.interfaces for a in i.addresses]
    assert "process" in system.launches
    assert (facts.job.deployed, dict(facts.job.files), facts.job.ranks) == (None, {}, ())


@pytest.mark.skipif("busybox" not in SHELLS, reason="this machine has no busybox")
def test_busyboxs_own_tools_tell_the_same(
    deployed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With awk, df, find, ip, stat and all the others from busybox no answer differs."""
    common = ask(Enquiry("demo", folders=("/",)))
    applets = tmp_path / "applets"
    applets.mkdir()
    subprocess.run(["busybox", "--install", "-s", applets], check=True)
    monkeypatch.setenv("PATH", f"{applets}:{os.environ['PATH']}")

    facts = ask(Enquiry("demo", folders=("/",)), over("busybox", "ash"))

    assert facts.job == common.job
    assert facts.job.current == deployed.joinpath("current").readlink().name
    assert [i.addresses for i in facts.network.interfaces] == [
        i.addresses for i in common.network.interfaces
    ]
    assert (facts.hardware.cores, facts.hardware.ram_total) == (
        common.hardware.cores,
        common.hardware.ram_total,
    )
    assert set(facts.hardware.disk_free) == {"/"}
    assert facts.unanswered == ()


def test_root_needs_no_sudo() -> None:
    """What says that sudo works without a password is never said of root."""
    system = ask(Enquiry("demo")).platform

    assert not (system.uid == 0 and system.sudo)
    assert not ask(Enquiry("demo", sudo=False)).platform.sudo


@pytest.mark.quiet
def test_a_healthy_machine_answers_at_once() -> None:
    """The best of three surveys does not wait for any deadline."""
    times = []
    for _ in range(3):
        began = time.monotonic()
        ask(Enquiry("demo", ports=(1,)))
        times.append(time.monotonic() - began)

    assert min(times) < 2


def test_a_survey_saves_and_loads() -> None:
    """What this machine said is the same survey after a turn through JSON."""
    seen = survey(targets(Enquiry("demo")), open_local, QUICK)

    assert load_survey(dump_survey(seen), "saved.json") == seen


def test_a_profile_that_prints_only_makes_the_host_noisy() -> None:
    """Banners, colours and another program's JSON change no answer."""
    banner = (
        'printf "\\033[1mwelcome\\n{\\"devices\\": []}\\nno newline at the end"; exec /bin/sh "$@"'
    )
    facts = ask(Enquiry("demo"), over("/bin/sh", "-c", banner, "sh"))

    assert facts.platform.noise == "welcome"
    assert facts.unanswered == ()
    assert ask(Enquiry("demo")).platform.noise == ""


# Speaks the user's language as gettext and libc choose it: LANGUAGE before all but the locale C.
POLYGLOT = r"""
tongue=${LC_ALL:-${LC_MESSAGES:-$LANG}}
case $tongue in C | POSIX) ;; *) tongue=${LANGUAGE:-$tongue} ;; esac
echo "$tongue" >>"$TONGUES"
case $tongue in
C) echo "Filesystem 1024-blocks Used Available Capacity Mounted on"; echo "/dev/sda1 9 2 7 23% /" ;;
*) echo "Dateisystem 1024-Blöcke Benutzt"; echo "/dev/sda1 9 Blöcke, 7,0 frei, eingehängt auf /" ;;
esac
"""


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS.keys())
@pytest.mark.parametrize("language", ["de_DE.UTF-8", "zh_CN.UTF-8", "tr_TR.UTF-8"])
def test_every_tool_is_asked_in_cs_language(
    language: str, shell: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that follows the user's locale in all its variables answers in C's, and is read."""
    program(tmp_path / "bin", "df", POLYGLOT)
    monkeypatch.setenv("TONGUES", str(tmp_path / "tongues"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for name in ("LANG", "LC_ALL", "LC_MESSAGES", "LANGUAGE"):
        monkeypatch.setenv(name, language)
    facts = ask(Enquiry("demo", folders=("/",)), over(*shell))

    assert (tmp_path / "tongues").read_text(encoding="utf-8").split() == ["C"]
    assert facts.hardware.disk_free == {"/": 7 << 10}
    assert facts.unanswered == ()


def test_a_hung_question_costs_its_answer_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that hangs is named, is no silent absence of a card, and is killed in the end."""
    note = tmp_path / "pid"
    program(tmp_path / "bin", "nvidia-smi", f"echo $$ >>{note}; echo 0, half; sleep 600; echo more")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    limits = SurveyLimits(patience=Patience(quick=3.0, slow=3.0))
    began = time.monotonic()

    facts = ask(Enquiry("demo"), limits=limits)

    assert 3.0 <= time.monotonic() - began < 60
    assert facts.unanswered == ("nvidia-smi", "nvidia-smi -L")
    (card,) = [device for device in facts.hardware.devices if device.device == "cuda"]
    assert (card.available, card.error) == (False, "nvidia-smi did not answer in time")
    assert all(ended(int(pid)) for pid in note.read_text().split())


def ended(pid: int) -> bool:
    """Tell whether *pid* ends within two seconds; a zombie has ended."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_broken_driver_is_told_from_no_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nvidia-smi prints on stdout with exit 18 becomes the device's error."""
    said = "Failed to initialize NVML: Driver/library version mismatch"
    program(tmp_path / "bin", "nvidia-smi", f'echo "{said}"; exit 18')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    (card,) = ask(Enquiry("demo")).hardware.devices[1:2]

    assert (card.device, card.available) == ("cuda", False)
    assert card.error.startswith(said)
    assert "reload the nvidia kernel module" in card.error


def test_a_program_in_the_users_own_folder_is_found(home: Path) -> None:
    """What a login finds in ~/.local/bin is told by its absolute path."""
    path = program(home / ".local/bin", "my trainer", "exit 0")

    assert ask(Enquiry("demo", programs=("my trainer",))).platform.programs == {
        "my trainer": str(path)
    }


def test_the_python_asked_for_is_the_one_told() -> None:
    """Version and numpy are those of the interpreter that was named, by its own path."""
    system = ask(Enquiry("demo", python=sys.executable)).platform

    assert system.python == sys.executable
    assert system.python_version == platform.python_version()
    assert system.numpy


def test_a_python_that_is_as_before_is_not_started() -> None:
    """What is known stands while the program and its folders of packages are the same files."""
    first = ask(Enquiry("demo", python=sys.executable)).platform
    known = replace(first, python_version="9.9.9", numpy="known")
    changed = replace(known, stamp=replace(first.stamp, text=f"{first.stamp.text} "))

    def told(enquiry: Enquiry) -> tuple[str, str]:
        system = ask(enquiry).platform
        return system.python_version, system.numpy

    real = (first.python_version, first.numpy)
    assert sysconfig.get_path("purelib") in first.stamp.folders
    assert told(Enquiry("demo", python=sys.executable, known=known)) == ("9.9.9", "known")
    assert told(Enquiry("demo", python=sys.executable, known=changed)) == real
    elsewhere = Enquiry("demo", python=f"{sys.base_prefix}/bin/python3", known=known)
    assert told(elsewhere)[0] == first.python_version


def test_a_python_that_was_changed_just_now_is_asked_next_time(tmp_path: Path) -> None:
    """A clock of seconds cannot tell two changes within one, so there is nothing to go by."""
    venv.create(tmp_path / "venv")
    system = ask(Enquiry("demo", python=f"{tmp_path}/venv/bin/python")).platform

    assert system.python == f"{tmp_path}/venv/bin/python"
    assert system.stamp.text == ""


def test_without_a_python_no_process_can_be_launched() -> None:
    """A host without the interpreter has no version of it and no process launch."""
    system = ask(Enquiry("demo", python="/nonexistent/python3")).platform

    assert (system.python, system.python_version, system.numpy) == ("", "", "")
    assert "process" not in system.launches


MARK = {
    "deployment": "d1",
    "job": "demo",
    "release": "r1",
    "generation": 1,
    "plan": "p",
    "launch": "process",
    "world": 1,
    "ranks": [0],
    "controller": "desk",
    "owner": "ann",
    "inventory": "inventory.toml",
    "applied_at": 1.0,
}


@pytest.fixture
def deployed(home: Path) -> Path:
    """A job in the user's tree, as an apply leaves it."""
    job = home / ".local/share/rlx/demo"
    release = job / "releases/r1"
    for folder in (release / "env", job / "run", job.parent / "store", job / "releases/r2.tmp"):
        folder.mkdir(parents=True)
    (release / "env/0.env").write_bytes(b'A="b"\n')
    (release / "env/0.env").chmod(0o600)
    (release / "with blank.txt").write_bytes(b"x")
    (release / ".released").write_text("with blank.txt\n")
    with (release / "checkpoint").open("wb") as written:
        written.truncate(1 << 40)
    (job / "current").symlink_to("releases/r1")
    (job / "deployment.json").write_text(json.dumps(MARK))
    (job.parent / "store" / ("a" * 64)).write_bytes(b"archive")
    units = home / ".config/systemd/user"
    (units / "rlx-demo@0.service.d").mkdir(parents=True)
    (units / "rlx-demo@.service").write_text("[Service]\n")
    (units / "rlx-demo@0.service.d/rank.conf").write_text("[Service]\n")
    (units / "rlx-demo2@.service").write_text("[Service]\n")
    return job


def test_what_lies_in_the_store_is_told_without_the_job(home: Path) -> None:
    """Another job has brought it, or one before; of this job there is nothing."""
    stored = home / ".local/share/rlx/store" / ("a" * 64)
    stored.parent.mkdir(parents=True)
    stored.write_bytes(b"archive")
    job = ask(Enquiry("demo")).job

    assert {path: seen.digest for path, seen in job.files.items()} == {
        str(stored): hashlib.sha256(b"archive").hexdigest()
    }
    assert (job.deployed, job.current, job.releases, job.strays) == (None, "", (), ())


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS.keys())
def test_the_jobs_own_files_are_told(shell: tuple[str, ...], deployed: Path, home: Path) -> None:
    """Digest, mode, owner and size of each of our files; none of another job's, or of its own."""
    job = ask(Enquiry("demo"), over(*shell)).job
    units = home / ".config/systemd/user"

    assert job.deployed is not None
    assert (job.deployed.deployment, job.current, job.releases) == ("d1", "r1", ("r1",))
    assert set(job.files) == {
        f"{deployed}/current/env/0.env",
        f"{deployed}/current/with blank.txt",
        f"{deployed}/deployment.json",
        f"{deployed.parent}/store/{'a' * 64}",
        f"{units}/rlx-demo@.service",
        f"{units}/rlx-demo@0.service.d/rank.conf",
    }
    env = job.files[f"{deployed}/current/env/0.env"]
    assert env.digest == hashlib.sha256(b'A="b"\n').hexdigest()
    assert (env.mode, env.size, env.kind) == (0o600, 6, "file")
    assert env.owner == deployed.owner()


def test_a_mark_of_a_stranger_refuses_the_host(deployed: Path) -> None:
    """A mark that cannot be read fails that host, by path."""
    (deployed / "deployment.json").write_text('{"job": "demo"')
    outcomes = survey_hosts(targets(Enquiry("demo")), open_local, QUICK)

    assert isinstance(outcomes.failed["local"], Refused)
    assert f"{deployed}/deployment.json" in str(outcomes.failed["local"])


def test_an_answer_that_nobody_can_read_fails_that_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that writes what no such tool writes is named by its question, and ends no run."""
    program(tmp_path / "bin", "ip", "echo 'sys|eth0'")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    error = survey_hosts(targets(Enquiry("demo")), open_local, QUICK).failed["local"]

    assert isinstance(error, Refused)
    assert "network: the answer cannot be read (ValueError: " in str(error)


def test_a_host_that_does_not_say_what_lies_there_may_be_asked_again(
    deployed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hung look at the job's own files fails the host, as one that time may heal."""
    assert deployed.is_dir()
    program(tmp_path / "bin", "sha256sum", "sleep 600")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    limits = SurveyLimits(patience=Patience(quick=3.0, slow=3.0))
    error = survey_hosts(targets(Enquiry("demo")), open_local, limits).failed["local"]

    assert isinstance(error, Unreachable)
    assert "user files: the host did not answer in time" in str(error)


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[str]]:
    """A process that listens on a port of its own choice and says which."""
    code = (
        "import socket, time; s = socket.create_server(('127.0.0.1', 0));"
        "print(s.getsockname()[1], flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        yield child
        child.kill()


def test_a_port_is_told_with_its_holder(worker: subprocess.Popen[str], deployed: Path) -> None:
    """Address, pid and command are those of the process; with our supervisor's word, its rank."""
    assert worker.stdout is not None
    port = int(worker.stdout.readline())
    enquiry = Enquiry("demo", ports=(port, 1))

    (holder,) = ask(enquiry).holders
    assert (holder.address, holder.port, holder.pid) == ("127.0.0.1", port, worker.pid)
    assert "create_server" in holder.command
    assert holder.rank is None

    said = {
        "format": 1,
        "rank": 3,
        "supervisor_pid": os.getpid(),
        "supervisor_start": start_of(os.getpid()),
        "pid": worker.pid,
        "active": "active",
        "ready": True,
    }
    (deployed / "run/3.supervisor").write_text(json.dumps(said) + "\n")
    (deployed / "run/3.state").write_text('{"joined": true}')
    facts = ask(enquiry)

    (rank,) = facts.job.ranks
    assert (rank.rank, rank.active, rank.ready, rank.pid) == (3, "active", True, worker.pid)
    assert rank.node == {"joined": True}
    assert [holder.rank for holder in facts.holders] == [3]


def start_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()[19]


def test_a_supervisor_that_is_gone_has_failed(deployed: Path) -> None:
    """Its number may run again as another process: the start time tells."""
    said = {"rank": 0, "supervisor_pid": os.getpid(), "supervisor_start": "1", "active": "active"}
    (deployed / "run/0.supervisor").write_text(json.dumps(said))

    (rank,) = ask(Enquiry("demo")).job.ranks

    assert (rank.active, rank.status) == ("failed", "its supervisor is gone")


def test_a_host_whose_shell_ends_at_once_is_unreachable_with_its_last_words() -> None:
    """What the shell said on stderr is the reason."""
    dying = over("/bin/sh", "-c", "echo account expired >&2; exit 1", "sh")
    outcomes = survey_hosts(targets(Enquiry("demo")), dying, QUICK)

    error = outcomes.failed["local"]
    assert "account expired" in str(error)


def test_a_host_that_is_lost_midway_is_unreachable_with_the_reason() -> None:
    """Half a survey is none: what is missing did not just take too long."""
    cut = '/bin/sh "$@" | head -n 3; echo "power failure" >&2'
    outcomes = survey_hosts(targets(Enquiry("demo")), over("/bin/sh", "-c", cut, "sh"), QUICK)

    error = outcomes.failed["local"]
    assert isinstance(error, Unreachable)
    assert "power failure" in str(error)


def test_a_host_that_never_answers_is_given_up_by_its_deadline() -> None:
    """A login shell that hangs costs its own deadline, and the survey says so."""
    limits = SurveyLimits(patience=Patience(quick=0.2, slow=0.2), transit=0.1)
    began = time.monotonic()
    seen = survey(targets(Enquiry("demo")), over("/bin/sh", "-c", "sleep 60", "sh"), limits)

    assert time.monotonic() - began < 30
    assert not seen.hosts
    assert "did not begin to answer" in seen.failed["local"]


def test_many_hosts_are_asked_together() -> None:
    """Every host has its own answers, in the order asked."""
    names = [f"host{number}" for number in range(3)]
    asked = Targets(tuple(Target(Host(name), Enquiry("demo")) for name in names))

    assert list(survey(asked, open_local, QUICK).hosts) == names
