"""What a new user gets wrong: each a clear error, and nothing half done."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.desk import Desk

NODE = '[[node]]\naddr = "127.0.0.1:29500"\ndevice = "cpu"\n'

WRONG = {
    "a misspelt key": (
        f'[job]\nlanch = "process"\n{NODE}',
        "inventory.toml:2:1: job.lanch: unknown key; did you mean 'launch'?",
    ),
    "a misspelt table": (
        f"[jobs]\n{NODE}",
        "inventory.toml:1:2: jobs: unknown key; did you mean 'job'?",
    ),
    "a misspelt value": (
        f'[job]\ntopology = "ring"\n{NODE}',
        "inventory.toml:2:1: job.topology:",
    ),
    "a number in quotes": (
        f'[network]\ndata_port = "9100"\n{NODE}',
        "inventory.toml:2:1: network.data_port:",
    ),
    "a truth for a number": (f"{NODE}slots = true\n", "inventory.toml:4:1: node[0].slots:"),
    "a port out of range": (
        '[[node]]\naddr = "127.0.0.1:99999"\n',
        "inventory.toml:2:1: node[0].addr:",
    ),
    "two nodes on one port": (f"{NODE}name = 'a'\n{NODE}name = 'b'\n", "127.0.0.1:29500"),
    "two nodes of one name": (f"{NODE}name = 'a'\n{NODE}name = 'a'\n", "node[1].name"),
    "no TOML": ("[job\n", "inventory.toml:1:5: "),
    "a key twice": ("[job]\nname = 'a'\nname = 'b'\n", "inventory.toml:3:"),
    "nothing at all": ("", "inventory.toml"),
    "no UTF-8": (b"[job]\n# caf\xe9\n", "inventory.toml:2:6: it is not UTF-8 here"),
    "a foreign address": (
        '[job]\nwire = "rlx"\nsecurity = "none"\n[[node]]\naddr = "192.0.2.7:29500"\n',
        "add ssh = ",
    ),
    "a file that is not there": (
        f'[job]\ncommand = ["sleep", "1"]\n[[job.files]]\nsource = "gone.py"\ndest = "a"\n{NODE}',
        "gone.py",
    ),
    "a variable of ours": (
        f'[job]\nenv = {{ RANK = "7" }}\n{NODE}',
        "inventory.toml:2:",
    ),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_is_named_with_its_place(desk: Desk, text: str | bytes, said: str) -> None:
    """Apply refuses with what is wrong and where, and leaves no trace of a try."""
    path = desk.lab / "inventory.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())

    done = desk.run("apply", "--yes", "--json")

    assert done.code == 1, done
    assert said in done.err
    assert "Traceback" not in done.err
    assert done.document["error"]["findings"]
    assert not (desk.lab / ".rlxdeploy").exists()
    assert list(desk.data.iterdir()) == []


def test_all_mistakes_of_a_file_are_reported_together(desk: Desk) -> None:
    """One run tells everything there is to mend."""
    desk.write(f'[job]\nlanch = "process"\nheap_mb = "64"\n{NODE}rnk = 0\n')
    err = desk.run("plan").err

    assert [line.count("error: inventory.toml:") for line in err.splitlines()] == [1, 1, 1]


@pytest.mark.parametrize("what", [".", "inventory.toml/x", "\udcff"])
def test_what_is_no_file_is_an_error(desk: Desk, what: str) -> None:
    """A folder, a path through a file, a name of odd bytes: said, not crashed on."""
    desk.pair()
    done = desk.run("plan", what)

    assert done.code == 1
    assert done.err.startswith("error: ")
    assert "Traceback" not in done.err


def test_a_taken_port_names_its_holder(desk: Desk) -> None:
    """The plan tells the pid and the command, and apply does not even begin."""
    desk.pair()
    with socket.create_server((desk.host, 29501)):
        planned, applied = desk.run("plan"), desk.run("apply", "--yes")

    assert (planned.code, applied.code) == (1, 1)
    assert f"rank 1: {desk.host} port 29501 on local is held by pid {os.getpid()} (" in planned.err
    assert Path(sys.executable).name in planned.err
    assert applied.err == planned.err
    assert not (desk.lab / ".rlxdeploy").exists()


@pytest.fixture
def mounted(desk: Desk) -> Iterator[Path]:
    """A disk of 128 KiB at the desk's data folder."""
    if os.geteuid() or sys.platform != "linux":
        pytest.skip("mounting a small disk takes root on Linux")
    options = ["-o", "size=128k,mode=700"]
    done = subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", desk.data], check=False)
    if done.returncode:
        pytest.skip("there is no right to mount here")
    yield desk.data
    subprocess.run(["umount", "-l", desk.data], check=True)


def test_a_full_disk_changes_nothing(desk: Desk, mounted: Path) -> None:
    """What does not fit is undone to the last folder, on the host and in the record."""
    (desk.lab / "big").write_bytes(os.urandom(1 << 18))
    files = '[[job.files]]\nsource = "big"\ndest = "big"\n'
    desk.pair(job=f'command = ["sleep", "600"]\n{files}')

    done = desk.run("apply", "--yes")

    assert done.code == 1
    assert f"the disk of {mounted} is full" in done.err
    assert "Nothing was changed on any host." in done.err
    assert list(mounted.iterdir()) == []
    assert desk.left() == []
    assert "not deployed" in desk.good("status").out


def recorded(desk: Desk) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((desk.lab / ".rlxdeploy/demo.json").read_text())
    return record


def test_a_disk_that_fills_up_keeps_what_runs(desk: Desk, mounted: Path) -> None:
    """The group of the last apply runs on, with its release and its record."""
    subprocess.run(["mount", "-o", "remount,size=2m", mounted], check=True)
    desk.pair()
    desk.good("apply", "--yes")
    before = desk.pids()
    record = recorded(desk)

    (desk.lab / "big").write_bytes(os.urandom(1 << 22))
    desk.pair(job='[[job.files]]\nsource = "big"\ndest = "big"\n')
    done = desk.run("apply", "--yes")

    assert done.code == 1
    assert desk.pids() == before
    # No host was told to go, so there is nothing to tell of.
    assert recorded(desk) == record


def test_a_home_that_cannot_be_written_is_an_error(desk: Desk) -> None:
    """Where no folder can be made the reason is the host's own, and nothing is left."""
    desk.pair()
    wall = desk.folder / "wall"
    wall.write_text("no folder\n")

    done = desk.run("apply", "--yes", XDG_DATA_HOME=str(wall))

    assert done.code == 1
    assert f"{wall}/rlx" in done.err
    assert "Nothing was changed on any host." in done.err
    assert list(desk.run_home.iterdir()) == []
    assert not (desk.lab / ".rlxdeploy/demo.json").exists()


def test_a_read_only_disk_is_an_error(desk: Desk, mounted: Path) -> None:
    """The system's own words reach the person."""
    subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)
    desk.pair()
    done = desk.run("apply", "--yes")

    assert done.code == 1
    assert "Read-only file system" in done.err


def test_a_record_that_cannot_be_written_stops_an_apply_before_it_begins(desk: Desk) -> None:
    """No host is changed by who could not remember it."""
    desk.pair()
    (desk.lab / ".rlxdeploy").write_text("in the way\n")

    done = desk.run("apply", "--yes")

    assert done.code == 1
    assert f"error: {desk.lab}/.rlxdeploy/demo.json: Not a directory" in done.err
    assert "Traceback" not in done.err
    assert list(desk.data.iterdir()) == []


def test_a_record_on_a_read_only_disk_names_its_file_once(desk: Desk, mounted: Path) -> None:
    """The folder of the inventory may be somebody else's to write."""
    desk.pair()
    inventory = mounted / "inventory.toml"
    inventory.write_text((desk.lab / "inventory.toml").read_text())
    (mounted / ".rlxdeploy").mkdir()
    (mounted / ".rlxdeploy/.gitignore").write_text("*\n")
    subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)

    done = desk.run("apply", "--yes", inventory, XDG_DATA_HOME=str(desk.run_home))

    journal = mounted / ".rlxdeploy/demo.journal"
    assert done.code == 1
    assert f"error: {journal}: cannot be written: Read-only file system" in done.err
    assert list(desk.run_home.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"format_version": 1}', b"\xff"])
def test_a_broken_record_is_no_record_of_ours(desk: Desk, content: bytes) -> None:
    """Its name and what to do are told; nothing is guessed."""
    desk.pair()
    folder = desk.lab / ".rlxdeploy"
    folder.mkdir()
    (folder / "demo.json").write_bytes(content)

    done = desk.run("plan")

    assert done.code == 1
    assert f"{folder}/demo.json: " in done.err
    assert "Traceback" not in done.err


def test_a_lost_record_is_found_again_on_the_hosts(desk: Desk) -> None:
    """The same inventory of the same person here is the same deployment."""
    desk.pair()
    desk.good("apply", "--yes")
    folder = desk.lab / ".rlxdeploy"
    (folder / "demo.json").unlink()
    (folder / "demo.known").rename(folder / "gone")

    assert "Nothing to change." in desk.good("plan").out
    assert desk.status()["joined"] == 2
    desk.good("destroy", "--yes")
    assert desk.left() == []


def test_another_deployment_in_the_same_place_is_left_alone(desk: Desk) -> None:
    """Who holds it, from where and since when is told; only --adopt takes it over."""
    desk.pair()
    desk.good("apply", "--yes")
    other = desk.lab / "other"
    other.mkdir()
    mine = other / "inventory.toml"
    mine.write_text((desk.lab / "inventory.toml").read_text())
    held = desk.pids()

    refused = [desk.run(verb, mine, *more) for verb, more in REFUSED.items()]

    for done in refused:
        assert done.code == 1
        assert "--adopt" in done.err
        assert socket.gethostname() in done.err
        assert "ago" in done.err
    assert desk.pids() == held

    adopted = desk.good("apply", "--yes", "--adopt", mine)
    assert "1 host to change" in adopted.out
    assert desk.run("plan").code == 1
    desk.good("destroy", "--yes", mine)
    assert desk.left() == []


REFUSED = {"plan": (), "apply": ("--yes",), "stop": (), "destroy": ("--yes",)}


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format_version": 1}'])
def test_a_survey_that_is_none_is_an_error(desk: Desk, content: str) -> None:
    """A file that is no saved survey is named; no host is asked instead."""
    desk.pair()
    desk.write(content, "survey.json")
    done = desk.run("plan", "--survey", "survey.json", "--json")

    assert done.code == 1
    assert "survey.json" in json.dumps(done.document)
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", ["resolve", "probe"])
def test_a_place_that_cannot_be_written_is_an_error(desk: Desk, command: str) -> None:
    """`--out` into nowhere is said in a line."""
    desk.pair()
    done = desk.run(command, "--out", "nowhere/file")

    assert done.code == 1
    assert "error: nowhere/file: it cannot be written" in done.err


def test_templates_that_are_not_there_are_an_error(desk: Desk) -> None:
    """A folder of templates that was named has to be one."""
    desk.pair()
    done = desk.run("plan", "--templates", "nowhere")

    assert done.code == 1
    assert "nowhere" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", ["logs", "restart"])
def test_what_is_not_deployed_cannot_be_used(desk: Desk, command: str) -> None:
    """The answer says what to do first."""
    desk.pair()
    done = desk.run(command)

    assert done.code == 1
    assert "deployed" in done.err
