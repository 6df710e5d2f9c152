"""A group's whole life, from the first plan to the last trace, through the real command."""

import os
import shutil
import signal
from typing import Any

from tests.cli.desk import EN_DASH, Desk, until


def ranks(status: dict[str, Any], key: str) -> list[Any]:
    return [rank[key] for rank in status["ranks"]]


def test_a_job_leaves_its_hosts_as_it_found_them(desk: Desk) -> None:
    """Files, processes and ports are the same before apply and after destroy."""
    desk.pair()
    before = (set(desk.files()), desk.left(), desk.ports())

    applied = desk.good("apply", "--yes")
    assert "demo: 2 of 2 ranks joined" in applied.out
    assert len(desk.left()) == 4, "two supervisors, two ranks"
    assert desk.ports()
    stored = next((desk.data / "rlx/store").glob("[0-9a-f]*"))
    neighbour = desk.data / "rlx/other/releases/r/env"
    neighbour.mkdir(parents=True)
    (neighbour / "0.env").write_text(f'PYTHONPATH="{stored}"\n')
    refused = desk.run("destroy")
    assert refused.code == 64
    assert str(stored) not in refused.out, "it is another job's, too"
    shutil.rmtree(desk.data / "rlx/other")
    destroyed = desk.good("destroy", "--yes")
    assert f"- {stored} " in destroyed.out

    assert (set(desk.files()), desk.left(), desk.ports()) == before
    assert "demo: destroyed." in destroyed.out
    assert "nothing to destroy" in desk.good("destroy", "--yes").out
    left = {path.name for path in (desk.lab / ".rlxdeploy").iterdir()}
    assert left == {".gitignore", "demo.journal"}


def test_a_second_apply_touches_nothing(desk: Desk) -> None:
    """Processes, start times, inodes and times of change stay; nobody is asked for a yes."""
    desk.pair()
    desk.good("apply", "--yes")
    pids, files = desk.records(), desk.files()

    assert desk.run("plan", "--detailed-exitcode").code == 0
    again = desk.good("apply")
    document = desk.good("apply", "--json").document

    assert "Nothing to change." in again.out
    assert (document["changed"], document["exit"]) == (False, 0)
    assert (desk.records(), desk.files()) == (pids, files)


def test_stop_keeps_the_files_and_restart_starts_the_whole_group(desk: Desk) -> None:
    """Stopped ranks end and say so; a restart brings new processes under a new epoch."""
    desk.pair()
    desk.good("apply", "--yes")
    first = desk.status()

    assert "demo: stopped." in desk.good("stop").out
    stopped = desk.status()
    assert ranks(stopped, "state") == ["inactive", "inactive"]
    assert not desk.ports()
    assert not desk.left()
    assert "nothing to stop" in desk.good("stop").out

    assert "2 of 2 ranks joined" in desk.good("restart").out
    running = desk.status()
    assert running["joined"] == 2
    assert ranks(running, "release") == ranks(first, "release")
    assert set(ranks(running, "epoch")).isdisjoint(ranks(first, "epoch"))

    assert "2 of 2 ranks joined" in desk.good("restart").out
    assert set(ranks(desk.status(), "pid")).isdisjoint(ranks(running, "pid"))


def test_a_stopped_group_starts_again_by_apply(desk: Desk) -> None:
    """The plan says that it does not run, and starts it."""
    desk.pair()
    desk.good("apply", "--yes")
    desk.good("stop")

    planned = desk.run("plan", "--detailed-exitcode")
    applied = desk.good("apply", "--yes")

    assert planned.code == 2
    both = f"ranks 0{EN_DASH}1"
    assert f"{both} do not run (inactive, exit 0); {both} start" in planned.out
    assert "2 of 2 ranks joined" in applied.out


def test_a_killed_rank_comes_back_into_a_whole_group(desk: Desk) -> None:
    """After SIGKILL of one rank all ranks meet again, with nobody's help."""
    desk.pair()
    desk.good("apply", "--yes")
    before = desk.status()

    os.kill(ranks(before, "pid")[1], signal.SIGKILL)
    until(lambda: desk.pids()[1] not in (0, ranks(before, "pid")[1]))
    waited = desk.good("wait", "--json").document

    assert waited["joined"] == 2
    assert ranks(waited, "restarts")[1] == 1
    assert set(ranks(waited, "epoch")).isdisjoint(ranks(before, "epoch"))
    assert len(set(ranks(waited, "digest"))) == 1


def test_drift_is_shown_and_mended(desk: Desk) -> None:
    """Without units too; what the job has written into its release stays."""
    desk.pair()
    desk.good("apply", "--yes")
    assert desk.status()["drift"] == []
    current = desk.data / "rlx/demo/current"
    env, release = current / "env/0.env", current.resolve()
    wanted = env.read_bytes()
    env.write_bytes(wanted + b"MORE=1\n")
    (current / "env/9.env").touch()
    (current / "process/1.json").chmod(0o644)
    (current / "checkpoint").touch()
    weight = desk.run_home / "systemd/user.control/rlx-demo@1.service.d/50-CPUWeight.conf"
    weight.parent.mkdir(parents=True)
    weight.write_text("[Service]\nCPUWeight=50\n")

    seen = desk.status()["drift"]
    assert {(one["path"].rpartition("/")[2], one["what"]) for one in seen} == {
        ("0.env", "has been changed"),
        ("9.env", "is not ours"),
        ("1.json", "has other permissions"),
        ("50-CPUWeight.conf", "is not ours"),
    }
    assert f"drift: local: {env} has been changed; apply puts it back" in desk.good("status").out
    assert desk.good("plan", "--json").document["drift"] == seen

    desk.good("apply", "--yes")
    assert [one["path"] for one in desk.status()["drift"]] == [str(weight)]
    assert "Nothing to change." in desk.good("plan").out
    assert (release / "checkpoint").exists()


def test_an_edited_value_restarts_all_ranks_once_and_says_why(desk: Desk) -> None:
    """One node's env is an input of its ranks; the group forms anew, and then rests."""
    second = f'[[node]]\naddr = "{desk.host}:29502"\ndevice = "cpu"\nname = "other"\n'
    desk.pair(node=second)
    desk.good("apply", "--yes")
    before = desk.pids()

    desk.pair(node=second + 'env = { MOOD = "good" }\n')
    planned = desk.good("plan")
    applied = desk.good("apply", "--yes")

    assert f"rank 2's inputs changed; ranks 0{EN_DASH}2 restart" in planned.out
    assert '+MOOD="good"' in planned.out
    assert "restart rank 2: its inputs changed" in planned.out
    assert "3 of 3 ranks joined" in applied.out
    after = desk.records()
    assert not set(before.values()) & {record["pid"] for record in after.values()}
    assert {record["restarts"] for record in after.values()} == {0}
    assert "Nothing to change." in desk.good("plan").out


def test_ranks_may_leave_and_come(desk: Desk) -> None:
    """A smaller group stops who is too many, a bigger one starts who is new."""
    inventory = desk.pair()
    inventory.write_text(inventory.read_text().replace("slots = 2", "slots = 3"))
    desk.good("apply", "--yes")

    desk.pair()
    smaller = desk.good("apply", "--yes")

    assert "stop rank 2: it is no longer on this host" in smaller.out
    assert ranks(desk.status(), "rank") == [0, 1]
    assert [rank for rank, pid in desk.pids().items() if pid] == [0, 1]


def test_a_star_needs_one_address(desk: Desk) -> None:
    """The coordinator alone has an address."""
    desk.write(
        f"""\
[job]
name = "star"
topology = "star"
launch = "process"
[[node]]
name = "coordinator"
addr = "{desk.host}:29500"
rank = 0
device = "cpu"
[[node]]
name = "workers"
device = "cpu"
slots = 2
"""
    )
    applied = desk.good("apply", "--yes")

    assert "3 ranks in a star on 1 host" in applied.out
    assert "3 of 3 ranks joined" in applied.out
    assert [row["address"] for row in desk.status("inventory.toml")["ranks"]] == [
        f"{desk.host}:29500",
        "",
        "",
    ]


def test_a_group_that_runs_elsewhere_is_only_told(desk: Desk) -> None:
    """Nobody is asked and no link is tried, so neither is said."""
    nodes = "".join(f'[[node]]\naddr = "10.9.9.{n}:29500"\nmanaged = false\n' for n in (1, 2))
    desk.write(nodes)

    plan = desk.good("plan")

    assert "2 ranks in a mesh" in plan.out
    assert "every link" not in plan.out
    assert "Nothing to change." in plan.out
    assert "survey" not in plan.err
