"""Signals and strangers in the middle of an apply."""

import json
import signal
import subprocess

import pytest

from rlxdeploy.app.circumstances import whoami
from tests.cli.desk import PATIENCE_S, Desk, until

# It never says that it is ready, so that the join is waited for until its deadline.
NEVER = 'ready = "notify"\nrestart = "no"\ncommand = ["sleep", "600"]\n'

BEGINS = "import os, time; from rlxdeploy.runtime import Node"


def joining(desk: Desk, *arguments: str) -> subprocess.Popen[str]:
    """Return an apply that waits for ranks which never join."""
    desk.pair(job=NEVER)
    process = desk.start("apply", "--yes", *arguments)
    until(lambda: len(desk.pids()) == 2 and all(desk.pids().values()))
    assert process.poll() is None
    return process


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
    ids=["SIGINT", "SIGTERM"],
)
def test_a_signal_during_the_join_releases_the_lock(
    desk: Desk, number: signal.Signals, code: int, word: str
) -> None:
    """The exit code says which it was, no trace is shown, and the next command has its way."""
    process = joining(desk, "--json")
    assert (desk.data / "rlx/demo/lock").exists()

    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == code
    assert f'"exit": {code}' in out
    assert word in err
    assert "Traceback" not in err
    assert not (desk.data / "rlx/demo/lock").exists()
    desk.good("destroy", "--yes")
    assert desk.left() == []


def test_an_apply_after_an_interrupted_one_takes_it_up(desk: Desk) -> None:
    """The release that nobody confirmed is waited for, and goes back where it cannot join."""
    process = joining(desk)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    pids = desk.pids()

    assert "it will remove the job in 180 s unless its ranks join" in err
    assert "to go on: rlxdeploy apply inventory.toml" in err
    assert desk.pids() == pids
    done = desk.run("apply", "--yes", "--join-timeout", "1", "--json")

    assert (done.code, done.document["rolled_back"]) == (3, True)
    assert "not READY after 1 s" in done.err
    assert desk.left() == []
    assert not (desk.data / "rlx").exists()


def test_a_group_that_has_not_joined_is_no_success_of_an_apply(desk: Desk) -> None:
    """With no change to make it is waited for all the same."""
    lame = desk.folder / "lame"
    program = f"{BEGINS}; os.path.exists('{lame}') or Node.from_env().connect(); time.sleep(600)"
    desk.pair(job=f'ready = "notify"\ncommand = ["python3", "-c", "{program}"]\n')
    desk.good("apply", "--yes")
    lame.touch()
    desk.run("restart", "--join-timeout", "0.5")

    words = desk.run("apply", "--join-timeout", "1")
    document = desk.run("apply", "--join-timeout", "1", "--json").document

    assert (words.code, document["exit"]) == (3, 3)
    assert "Nothing to change." in words.out
    assert "not READY after 1 s" in words.err
    assert "the group did not form" in words.err
    assert "nothing was changed" in words.err
    assert (document["changed"], document["joined"]) == (False, False)
    assert document["rolled_back"] is False


def test_of_two_applies_at_once_one_wins(desk: Desk) -> None:
    """Begun at the same moment: the other one leaves with 5, says who has it, and changes nothing.

    Whichever comes first to the ports or the lock has them, and waits for its ranks meanwhile.
    """
    desk.pair(job=NEVER)
    both = [desk.start("apply", "--yes", "--json") for _ in range(2)]
    until(lambda: any(one.poll() is not None for one in both), PATIENCE_S)
    winner, loser = sorted(both, key=lambda one: one.poll() is not None)
    out, err = loser.communicate(timeout=PATIENCE_S)

    assert loser.returncode == 5, out + err
    assert f"apply by {whoami()}@" in json.loads(out)["hosts"]["local"]["why"]
    assert "Nothing was changed on any host." in err
    until(lambda: len(desk.pids()) == 2 and all(desk.pids().values()), PATIENCE_S)
    pids = desk.pids()

    inventory = desk.lab / "inventory.toml"
    inventory.write_text(inventory.read_text() + 'env = { MORE = "1" }\n')
    releases = set((desk.data / "rlx/demo/releases").iterdir())
    late = desk.run("apply", "--yes")
    assert (late.code, "held by apply by" in late.err) == (5, True)
    assert set((desk.data / "rlx/demo/releases").iterdir()) == releases
    assert (winner.poll(), desk.pids()) == (None, pids)


def test_a_join_that_takes_too_long_names_who_was_missing(desk: Desk) -> None:
    """At its deadline a first apply fails with 3, and nothing of it runs on."""
    desk.pair(job=NEVER)
    done = desk.run("apply", "--yes", "--join-timeout", "1.5")

    assert done.code == 3
    assert f"rank 1 on local at {desk.host}:29501" in done.err
    assert "not READY after 1.5 s" in done.err
    assert "the hosts are as they were" in done.err
    assert desk.left() == []


UNBEGUN = {
    "a workdir that is not there": ('workdir = "/nonexistent"', 200, "its workdir is not there"),
    "a program that cannot be run": ("", 203, "its program cannot be run"),
}


@pytest.mark.parametrize(("key", "code", "why"), UNBEGUN.values(), ids=UNBEGUN.keys())
def test_what_a_failed_first_apply_printed_can_be_read(
    desk: Desk, key: str, code: int, why: str
) -> None:
    """The host is as it was; the logs are beside the inventory until the job is destroyed."""
    program = desk.folder / "program"
    program.write_text("#!/nonexistent/interpreter\n")
    program.chmod(0o755)
    command = "sleep" if code == 200 else str(program)
    desk.pair(job=f'restart = "no"\nready = "notify"\ncommand = ["{command}", "600"]\n{key}\n')
    done = desk.run("apply", "--yes")
    logs = desk.lab / ".rlxdeploy" / "demo.logs"

    assert done.code == 3
    assert f"ended with exit {code} (as a rule: {why}" in done.err
    assert f"the logs of the ranks are in {logs}" in done.err
    assert not (desk.data / "rlx").exists()
    for rank in (0, 1):
        log = logs / f"rank-{rank}.log"
        assert f"failed: exit {code}" in log.read_text()
        assert log.stat().st_mode & 0o777 == 0o600
    desk.good("destroy", "--yes")
    assert not logs.exists()


def test_a_terminated_follower_ends_at_once(group: Desk) -> None:
    """SIGTERM is 143 for those who only look, too."""
    process = group.start("logs", "-f")
    assert process.stdout is not None
    process.stdout.readline()
    process.terminate()
    process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 143
