"""A user's own program in place of the built-in node, with files of its own."""

import json

from tests.cli.desk import Desk, until

JOINS = """\
import sys
import numpy as np
from rlxdeploy.runtime import Node, ReduceKind

with Node.from_env().connect() as group:
    total = np.full(1, group.rank + 1, dtype=np.float32)
    group.all_reduce(total, ReduceKind.SUM)
    print("sum", total[0], open("greeting.txt").read().strip(), *sys.argv[1:], flush=True)
"""

FILES = """\
[[job.files]]
source = "own.py"
dest = "own.py"
[[job.files]]
source = "greeting.txt"
dest = "greeting.txt"
mode = "0640"
"""


def program(desk: Desk, command: str, *lines: str, rest: str = "") -> None:
    job = "\n".join((f"command = {command}", *lines, rest))
    desk.pair(job=job)


def test_a_program_that_connects_joins_and_its_end_is_waited_for(desk: Desk) -> None:
    """It imports the runtime it was sent with, reads its files and adds up what ranks bring."""
    (desk.lab / "own.py").write_text(JOINS)
    (desk.lab / "greeting.txt").write_text("hello\n")
    command = '["python3", "own.py", "a b", "$HOME", "100%"]'
    program(desk, command, 'ready = "notify"', 'restart = "no"', rest=FILES)

    applied = desk.good("apply", "--yes")
    finished = desk.good("wait", "--finished", "--json").document
    logs = desk.good("logs").out

    assert "2 of 2 ranks joined" in applied.out
    assert [rank["exit_status"] for rank in finished["ranks"]] == [0, 0]
    assert "rank 0 | sum 3.0 hello a b $HOME 100%" in logs
    assert "rank 1 | sum 3.0 hello a b $HOME 100%" in logs
    current = desk.data / "rlx/demo/current"
    assert (current / "greeting.txt").stat().st_mode & 0o777 == 0o640

    (desk.lab / "greeting.txt").write_text("good bye\n")
    planned = desk.good("plan").out
    assert "inputs changed (greeting.txt)" in planned
    assert "-hello" in planned
    assert "+good bye" in planned


def test_a_program_without_words_is_started_and_no_more_is_claimed(desk: Desk) -> None:
    """For exec it is alive for five seconds that counts, and the output says how little."""
    program(desk, '["sh", "-c", "echo up; exec sleep 600"]')
    planned = desk.good("plan")
    applied = desk.good("apply", "--yes")
    status = desk.good("status")

    assert "started, joining not proven" in planned.out
    assert "2 of 2 ranks started, joining not proven" in applied.out
    assert "2 of 2 ranks started, joining not proven" in status.out
    assert status.out.count("  not proven  ") == len(("rank 0", "rank 1"))
    assert "Nothing to change." in desk.good("plan").out

    # Not applied: what runs proves no more than before.
    program(desk, '["sh", "-c", "echo up; exec sleep 600"]', 'ready = "notify"')
    seen = desk.good("status", "--json").document
    assert seen["proven"] is False
    # It agrees with nobody on an epoch: what all were started under stands for it.
    told = json.loads((desk.data / "rlx/demo/deployment.json").read_text())["plan"]
    assert [rank["epoch"] for rank in seen["ranks"]] == [told, told]
    assert status.out.count(f"  {told[:8]}  ") == len(("rank 0", "rank 1"))


def test_what_a_program_writes_beside_its_files_is_not_read(desk: Desk) -> None:
    """A checkpoint bigger than anybody could digest holds up no plan and no look."""
    (desk.lab / "own.py").write_text(
        "import time\nopen('checkpoint', 'wb').truncate(1 << 40)\ntime.sleep(600)\n"
    )
    files = '[[job.files]]\nsource = "own.py"\ndest = "own.py"\n'
    program(desk, '["python3", "own.py"]', rest=files)
    desk.good("apply", "--yes")
    assert (desk.data / "rlx/demo/current/checkpoint").stat().st_size == 1 << 40

    assert "Nothing to change." in desk.good("plan").out
    assert ranks_that_run(desk) == 2
    destroyed = desk.good("destroy", "--yes").out
    assert "- " + str(desk.data / "rlx/demo/current/own.py") in destroyed
    assert desk.left() == []


def ranks_that_run(desk: Desk) -> int:
    return sum(rank["state"] == "active" for rank in desk.status()["ranks"])


def test_a_command_that_dies_at_once_fails_the_first_apply(desk: Desk) -> None:
    """Its last lines are shown, the exit code is 3, and nothing is left running."""
    program(desk, '["sh", "-c", "echo first; echo cannot go on >&2; exit 9"]')

    done = desk.run("apply", "--yes")

    assert done.code == 3
    assert f"error: rank 0 on local at {desk.host}:29500: ended with exit 9" in done.err
    assert "  | first\n  | cannot go on\n" in done.err
    assert "the hosts are as they were" in done.err
    folder = desk.lab / ".rlxdeploy/demo.logs"
    assert f"the last words of its ranks are in {folder}" in desk.run("logs").err
    assert "cannot go on\n" in (folder / "rank-0.log").read_text()
    assert desk.left() == []
    assert not (desk.data / "rlx").exists()


def test_a_later_apply_that_cannot_join_goes_back(desk: Desk) -> None:
    """The release before runs again, and the output and the exit code tell."""
    desk.pair()
    before = desk.good("apply", "--yes", "--json").document["release"]
    program(desk, '["sh", "-c", "echo broken; exit 7"]', 'restart = "no"')

    done = desk.run("apply", "--yes", "--json")

    assert (done.code, done.document["exit"], done.document["joined"]) == (3, 3, False)
    assert (done.document["rolled_back"], done.document["rejoined"]) == (True, True)
    assert "broken" in done.document["blamed"][0]["log"]
    assert f"release {before} has joined again" in done.err
    ranks = desk.status()["ranks"]
    assert {(rank["release"], rank["joined"]) for rank in ranks} == {(before, True)}
    assert len({rank["digest"] for rank in ranks}) == 1


def test_waiting_for_a_rank_that_has_failed_ends_at_once(desk: Desk) -> None:
    """A group that cannot join any more is not waited for."""
    fails = desk.folder / "fails"
    script = f"test -e {fails} || exec sleep 600; exit $((RANK * 64))"
    program(desk, f'["sh", "-c", "{script}"]', 'restart = "no"', 'ready = "exec"')
    desk.good("apply", "--yes")
    fails.touch()
    desk.run("restart", "--join-timeout", "1")
    until(lambda: not any(desk.pids().values()))

    joined = desk.run("wait", "--timeout", "50")
    finished = desk.run("wait", "--finished")

    assert joined.code == 1
    assert "rank 1 has failed" in joined.err
    assert finished.code == 64


def test_a_program_that_is_not_there_is_refused_by_name(desk: Desk) -> None:
    """The places searched are part of the answer, and nothing is started."""
    program(desk, '["no-such-program"]')
    done = desk.run("plan")

    assert done.code == 1
    assert "no-such-program" in done.err
    assert "Traceback" not in done.err
