"""The whole line on six hosts of three releases, as root over SSH: from plan to destroy.

The tests are one job's life, in their order.
"""

from collections.abc import Mapping

import pytest

from tests.fleet.desk import Desk, differences, footprints, one_login_each, standing
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host

WORLD = 6


@pytest.fixture(scope="module")
def desk(fleet: Fleet, six: list[Host]) -> Desk:
    """Give the desk of a job on all six hosts."""
    desk = Desk(fleet, "mixed")
    desk.write_hosts(six, job='launch = "systemd"')
    return desk


@pytest.fixture(scope="module")
def before(six: list[Host]) -> Mapping[str, set[str]]:
    """Give what the hosts show before anything is done to them."""
    return footprints(six)


def test_a_job_comes_up_and_is_left_alone(
    desk: Desk, six: list[Host], before: Mapping[str, set[str]]
) -> None:
    """Plan changes nothing, apply forms the group, and a second one is no change.

    With two hosts worked on at once all six get there, each by one login.
    """
    planned = desk.run("plan", "--detailed-exitcode", code=2)
    assert "mixed: 6 ranks in a mesh on 6 hosts" in planned.stdout
    assert differences(before, six) == []

    with one_login_each(six):
        applied = desk.run("apply", "--yes", "--forks", "2")
    assert "preflight: 15 links answered in " in applied.stdout
    assert "6 of 6 ranks joined" in applied.stdout
    with one_login_each(six):
        assert desk.is_whole(WORLD) == ""
    said = desk.run("logs", "--since", "today").stdout
    for follow in ((), ("-f",)):
        refused = desk.run("logs", "--since", "some day", *follow, code=64).stderr
        assert "--since is no time that " in refused
        assert "some day" in refused
    assert all(f"rank {rank} | " in said for rank in range(WORLD))
    assert said.count("joined as rank") >= WORLD
    follow_logs(desk)
    watch(desk)

    stood = [standing(host) for host in six]
    with one_login_each(six):
        assert desk.json("apply", "--yes")["changed"] is False
    assert [standing(host) for host in six] == stood


def follow_logs(desk: Desk) -> None:
    """See lines of every rank come, and Ctrl-C end that; what is left on hosts is asked at last."""
    wanted, seen = {f"rank {rank}" for rank in range(WORLD)}, set[str]()
    with desk.running("logs", "-f", "-n", "1") as follower:
        assert follower.stdout is not None
        while not wanted <= seen:
            seen.add(follower.stdout.readline().partition(" | ")[0])


def watch(desk: Desk) -> None:
    """See the table come again by itself, and Ctrl-C end that."""
    summary = f"mixed: {WORLD} of {WORLD} ranks joined, digests equal\n"
    with desk.running("status", "--watch") as watcher:
        assert watcher.stdout is not None
        for _ in ("once", "again"):
            table = [watcher.stdout.readline() for _ in range(1 + WORLD + 1)]
            assert [line.split()[0] for line in table[:-1]] == ["rank", *map(str, range(WORLD))]
            assert table[-1] == summary


@pytest.mark.timeout(240, func_only=True)
def test_a_group_heals_by_itself(desk: Desk, six: list[Host]) -> None:
    """After a kill, a reboot, power off and on, and a power cut it is whole, with no controller."""
    killed, rebooted, switched, cut = six[1], six[3], six[4], six[5]
    [first, *_] = desk.ranks()

    killed.exec(("systemctl", "kill", "--signal=KILL", "rlx-mixed@1"))
    anew, again, *_ = desk.watch_whole(WORLD, other_than=first["epoch"])
    assert again["restarts"] >= 1

    rebooted.reboot()
    [anew, *_] = desk.await_whole(WORLD, other_than=anew["epoch"])

    switched.power_off()
    switched.power_on()
    [anew, *_] = desk.await_whole(WORLD, other_than=anew["epoch"])

    cut.power_cut()
    cut.power_on()
    desk.await_whole(WORLD, other_than=anew["epoch"])
    assert desk.json("apply", "--yes")["changed"] is False


def test_a_job_goes_without_a_trace(
    desk: Desk, six: list[Host], before: Mapping[str, set[str]]
) -> None:
    """Stopped, its ranks rest; destroyed, each host is as it was, whatever befell it meanwhile."""
    with one_login_each(six):
        desk.run("stop")
    assert {rank["state"] for rank in desk.ranks()} == {"inactive"}
    with one_login_each(six):
        desk.run("destroy", "--yes")
    assert differences(before, six) == []
