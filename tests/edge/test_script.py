"""The script of one host, driven by hand: every way in which GO may not come."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rlxdeploy.edge.script import Script, Terms, compose
from rlxdeploy.edge.session import BOOTSTRAP, framed
from rlxdeploy.model.plan import HostPlan
from rlxdeploy.model.step import (
    InstallFile,
    ReloadUnits,
    RemoveFile,
    StartRanks,
    StopRanks,
    SwitchRelease,
)
from tests.edge.deployment import Lab, listing

MARKER = "0123456789abcdef"
PATIENCE_S = 15.0


class Host:
    """One run of a script, with the wire in our hands."""

    def __init__(self, lab: Lab, stage_s: int = 60) -> None:
        self.files = lab.files("r1")
        part = lab.apply_plan(self.files).hosts[lab.name]
        terms = Terms(MARKER, "ann@desk: apply", stage_s, 60)
        self.script: Script = compose(part, self.files.hosts[lab.name], terms)
        self.process = subprocess.Popen(
            [*lab.shell, "-c", BOOTSTRAP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )

    @property
    def whole(self) -> bytes:
        return framed(self.script.text) + self.script.payload

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def until(self, word: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = line.decode().split()
            if said[:1] == [MARKER] and said[1] == word:
                return " ".join(said[2:])
        raise AssertionError(f"the script ended without {word}")

    def hang_up(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def ends(self) -> int:
        return self.process.wait(PATIENCE_S)


Cut = Callable[[Host], int]
CUTS: dict[str, Cut] = {
    "before the payload": lambda host: len(framed(host.script.text)),
    "within the payload": lambda host: len(framed(host.script.text)) + 5000,
    "before its last byte": lambda host: len(host.whole) - 1,
    "within the script": lambda host: len(framed(host.script.text)) // 2,
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
def test_a_channel_cut_while_sending_leaves_nothing(lab: Lab, cut: Cut) -> None:
    """Wherever the bytes stop, the folders are as they were."""
    before = listing(lab.folder)
    host = Host(lab)
    host.send(host.whole[: cut(host)])
    host.hang_up()

    assert host.ends() != 0
    assert listing(lab.folder).keys() == before.keys()


def test_a_channel_cut_before_go_leaves_nothing(lab: Lab) -> None:
    """What was staged goes with the channel, and so does the lock."""
    before = listing(lab.folder)
    host = Host(lab)
    host.send(host.whole)
    host.until("staged")
    staged = listing(lab.folder)
    host.hang_up()

    assert "share/rlx/t/releases/r1/env/0.env" in staged
    assert host.ends() != 0
    assert listing(lab.folder).keys() == before.keys()


def test_no_go_before_the_deadline_leaves_nothing(lab: Lab) -> None:
    """A controller that falls silent is not waited for, and is told so if it still listens."""
    before = listing(lab.folder)
    host = Host(lab, stage_s=4)
    host.send(host.whole)
    host.until("staged")

    assert host.until("undone") == "no GO in time"
    assert host.ends() != 0
    assert listing(lab.folder).keys() == before.keys()
    host.hang_up()


def test_a_payload_that_stands_still_ends_at_the_deadline(lab: Lab) -> None:
    """A half-open connection holds the lock no longer than it may."""
    before = listing(lab.folder)
    host = Host(lab, stage_s=4)
    host.send(host.whole[:-10])

    assert host.until("undone") == "no GO in time"
    assert host.ends() != 0
    assert listing(lab.folder).keys() == before.keys()
    host.hang_up()


def test_anything_but_go_undoes(lab: Lab) -> None:
    """GO is one word; another is no go."""
    host = Host(lab)
    host.send(host.whole)
    host.until("staged")
    host.send(b"GOOD\n")

    assert host.until("undone") == "no GO"
    assert host.ends() != 0
    assert not lab.home.exists()
    host.hang_up()


def test_a_channel_cut_after_go_stops_nothing(lab: Lab) -> None:
    """Once told to go the host finishes by itself and releases the lock."""
    host = Host(lab)
    host.send(host.whole)
    host.until("staged")
    host.send(b"GO\n")
    host.hang_up()

    assert host.ends() == 0
    assert lab.record()["active"] == "active"
    assert not (lab.home / "lock").exists()


def test_noise_before_the_script_is_no_answer(lab: Lab) -> None:
    """What a profile prints, and lines before BEGIN, change nothing."""
    host = Host(lab)
    host.send(b"GO\nexit 1\n" + host.whole)
    host.until("staged")
    host.send(b"GO\n")
    host.until("over")
    host.send(b"BYE\n")

    assert host.ends() == 0
    host.hang_up()


def test_a_lock_whose_owner_is_gone_is_taken_over(lab: Lab) -> None:
    """A controller that was killed with its host's shell does not lock the job for ever."""
    host = Host(lab)
    host.send(host.whole)
    host.until("staged")
    os.kill(host.process.pid, signal.SIGKILL)
    host.ends()
    host.hang_up()
    assert (lab.home / "lock").exists()
    after = Host(lab)
    after.send(after.whole)
    after.until("staged")
    after.hang_up()

    assert after.ends() != 0
    time.sleep(0.1)
    assert not (lab.home / "lock").exists()


@pytest.mark.parametrize("launch", ["systemd", "systemd-user"])
def test_units_are_driven_by_their_own_verbs(tmp_path: Path, launch: str) -> None:
    """Under a service manager no supervisor is called, and root's deeds go through one function."""
    lab = Lab(tmp_path)
    path = "/etc/systemd/system/rlx-t@.service"
    go = (
        StopRanks((0,), disable=True),
        SwitchRelease("r1"),
        RemoveFile(path),
        ReloadUnits(),
        StartRanks((0, 1), boot=True, release="r1"),
    )
    plan = lab.plan((), go)
    part = HostPlan(plan.hosts["local"].host, lab.tree, launch, go=go)
    text = compose(part, None, Terms(MARKER, "ann", 60, 60)).text
    calls = [line for line in text.replace("'\"'\"'", "'").splitlines() if line.startswith("step ")]

    assert calls == [
        "step 1 stop_units disable 0",
        f"step 2 durably {lab.home} -- switch r1",
        f"step 3 remove {path}",
        "step 4 reload_held",
        "step 5 start_units boot 0 1",
    ]
    assert ("sudo -n /bin/sh -c" in text) == (launch == "systemd")


def test_a_content_that_is_not_there_is_a_bug_of_the_caller(tmp_path: Path) -> None:
    """A plan and files that do not belong together are found before anything is sent."""
    lab = Lab(tmp_path)
    go = (InstallFile("/etc/x", "0" * 64, 1, 0o644),)
    part = lab.plan((), go).hosts["local"]
    with pytest.raises(KeyError):
        compose(part, None, Terms(MARKER, "ann", 60, 60))
