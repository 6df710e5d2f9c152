"""Releases that cannot join, on hosts of three releases: all go back, with or without us."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fleet.desk import RUN_S, Desk, differences, footprints, logins, to_be_whole
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until

WORLD = 3
BACK_S = 25
# Long enough for a group of hosts that share two cores to join in, and to be killed in.
TIMES = f"join_timeout = 20\nrevert_after = {BACK_S}\n"
BROKEN = 'ready = "notify"\ncommand = ["sh", "-c", "echo broken; exit 9"]\n'
NEVER = 'ready = "notify"\ncommand = ["sleep", "600"]\n'
# It joins, but not before there was time to break something.
LATE = 'ready = "notify"\ncommand = ["sh", "-c", "sleep 5; exec python3 -m rlxdeploy.runtime"]\n'
# On one host it has another key than the group.
OTHER_KEY = "/etc/other-key"
WRONG_KEY = f"""\
ready = "notify"
command = ["sh", "-c", '''
  [ ! -f {OTHER_KEY} ] || export RLX_KEY_FILE={OTHER_KEY}; exec python3 -m rlxdeploy.runtime
''']
"""
PORT, NEXT_PORT = 29500, 29510
# Far more than it takes to see that two ranks that are up cannot reach one another.
PATIENT_S = 90
HEALED_S = BACK_S + 90.0

# Each waits for a timer or two, and for groups to form.
pytestmark = pytest.mark.timeout(400, func_only=True)

USERS = {
    "systemd": 'launch = "systemd"\n',
    "systemd-user": 'launch = "systemd-user"\n',
    "process": 'launch = "process"\n',
}
TABLES = {"systemd": "", "systemd-user": '[ssh]\nuser = "nosudo"', "process": ""}
# What a power cut does not end for good.
UNITS = ("systemd", "systemd-user")


@pytest.fixture(scope="module")
def three(fleet: Fleet) -> Iterator[list[Host]]:
    """Give one host of each release, where a user's manager may linger."""
    with fleet.lend(3) as hosts:
        for host in hosts:
            host.linger("nosudo")
        yield hosts


class Job:
    """A group that stands on release one, and can be given others."""

    def __init__(self, fleet: Fleet, hosts: list[Host], launch: str, name: str) -> None:
        self.desk, self.hosts, self.launch = Desk(fleet, name), hosts, launch
        self.write()
        self.desk.run("apply", "--yes")
        self.release = self.releases()

    def write(self, job: str = "", port: int = PORT) -> None:
        tables = f"{TABLES[self.launch]}\n[network]\ndata_port = {port}\n"
        self.desk.write_hosts(self.hosts, job=USERS[self.launch] + TIMES + job, tables=tables)

    def releases(self) -> set[str]:
        return {rank["release"] for rank in self.desk.ranks()}

    def start(self) -> subprocess.Popen[str]:
        inventory = str(self.desk.folder / "inventory.toml")
        return self.desk.fleet.spawn(("rlxdeploy", "apply", inventory, "--yes"))

    def stands(self) -> str:
        """Say what lacks to be whole on release one, with no way back open anywhere."""
        if waiting := [host.name for host in self.hosts if timers(host)]:
            return f"no timer on {waiting}"
        ranks = self.desk.ranks()
        if (shown := {rank["release"] for rank in ranks}) != self.release:
            return f"release {self.release}, not {shown}"
        return to_be_whole(ranks, WORLD)


def timers(host: Host) -> str:
    """Return the revert timers on a host, in every tree."""
    find = "find / -xdev -path /usr -prune -o -name 'rlx-*-revert.*' -print"
    return host.exec(("sh", "-c", find)).stdout


def goes_back_at_once(job: Job, release: str = BROKEN) -> dict[str, Any]:
    """Apply what ends as soon as it starts, and see the group before on all hosts, whole."""
    assert job.stands() == ""
    job.write(release)
    document = job.desk.json("apply", "--yes", code=3)
    assert (document["rolled_back"], document["rejoined"]) == (True, True)
    assert {host["state"] for host in document["hosts"].values()} == {"gone back"}
    assert {host["release"] for host in document["hosts"].values()} == job.release
    assert document["waited"] < 20
    assert job.stands() == ""
    return document


def is_cut_off(job: Job, port: int) -> str:
    """Apply what one host lets nobody join at *port*, and return what a person reads."""
    job.write("env = { MORE = '1' }\n", port)
    walled, caller = job.hosts[1:]
    walled.firewall("DROP", port=port)
    arguments = ("--yes", "--no-preflight", f"--join-timeout={PATIENT_S}")
    said = job.desk.run("apply", *arguments, code=3).stderr
    ends = f"cannot reach rank 1 on {walled.name}, which is up: dialled {walled.address}:{port}: "
    assert f"rank 2 on {caller.name} at {caller.address}:{port}: it {ends}" in said
    assert f"the group did not form (after {PATIENT_S}" not in said
    return said


def test_a_release_that_cannot_join_is_taken_back_everywhere(
    fleet: Fleet, three: list[Host]
) -> None:
    """A bad command, a wrong key and a port blocked on one host end the wait; all are as before."""
    before = footprints(three)
    job = Job(fleet, three, "systemd", "takeback")
    goes_back_at_once(job)

    three[1].write(OTHER_KEY, "5a" * 32 + "\n", mode=0o600)
    refused = goes_back_at_once(job, WRONG_KEY)
    three[1].exec(("rm", OTHER_KEY))
    assert {one["rank"] for one in refused["blamed"]} == {1}
    assert "ended with exit 78" in refused["blamed"][0]["why"]

    (release,) = job.release
    said = is_cut_off(job, NEXT_PORT)
    three[1].open_firewall()
    for host in three:
        assert re.search(rf"^  {host.name} +{release} +\d +gone back$", said, re.MULTILINE)
    assert re.search(rf"release {release} has joined again in ", said)
    assert job.stands() == ""

    job.desk.run("destroy", "--yes")
    assert differences(before, three) == []


def test_a_wall_that_the_group_before_meets_too_ends_both_waits(
    fleet: Fleet, three: list[Host]
) -> None:
    """No preflight looks where PEERS stay the same; once it is gone the group before is READY."""
    before = footprints(three)
    job = Job(fleet, three, "systemd-user", "walled")
    goes_back_at_once(job)

    assert "the release before was started again and has not joined" in is_cut_off(job, PORT)
    three[1].open_firewall()
    wait_until(job.stands, HEALED_S)

    job.desk.run("destroy", "--yes")
    assert differences(before, three) == []


def test_supervised_ranks_go_back_too(fleet: Fleet, three: list[Host]) -> None:
    """Where no unit starts them, a bad command is taken back on every host all the same."""
    before = footprints(three)
    job = Job(fleet, three, "process", "takeback")
    goes_back_at_once(job)

    job.desk.run("destroy", "--yes")
    assert differences(before, three) == []


def winner(job: Job) -> subprocess.Popen[str]:
    """Begin two applies at once; one leaves and says who has the job, the other is returned."""
    both = [job.start() for _ in range(2)]
    wait_until(lambda: "" if any(one.poll() is not None for one in both) else "a loser", 60)
    won, lost = sorted(both, key=lambda one: one.poll() is not None)
    said, why = lost.communicate()
    assert (lost.returncode, "held by apply by" in why) == (5, True), said + why
    return won


@pytest.mark.parametrize("launch", UNITS)
def test_hosts_go_back_without_a_controller(fleet: Fleet, three: list[Host], launch: str) -> None:
    """Of two at once one leaves; the other is killed while ranks join that never will.

    One host loses its power meanwhile.
    """
    job = Job(fleet, three, launch, "alone")
    job.write(NEVER)
    apply = winner(job)
    wait_until(lambda: "" if all(map(timers, three)) else "timers on all hosts", 60)
    os.killpg(apply.pid, signal.SIGKILL)
    apply.communicate()
    three[2].power_cut()
    three[2].power_on()

    wait_until(job.stands, HEALED_S)
    job.desk.run("destroy", "--yes")


def test_a_connection_that_breaks_after_go_rolls_nothing_back(
    fleet: Fleet, three: list[Host]
) -> None:
    """The host is reached again and told to stay: one release, a new one, on all hosts."""
    job = Job(fleet, three, "systemd", "breaks")
    job.write(f"{LATE}env = {{ MORE = '1' }}\n")
    before = logins(three[0])
    apply = job.start()
    wait_until(lambda: "" if all(map(timers, three)) else "timers on all hosts", 60)
    three[0].exec(("pkill", "-f", "^sshd(-session)?: root@notty"))
    said, why = apply.communicate(timeout=RUN_S)

    assert apply.returncode == 0, said + why
    assert logins(three[0]) == before + 2
    assert not any(map(timers, three))
    assert job.desk.is_whole(WORLD) == ""
    assert job.releases() != job.release
    job.desk.run("destroy", "--yes")


def test_a_good_release_outlives_its_controller(fleet: Fleet, three: list[Host]) -> None:
    """Killed after GO: every host sees that its ranks have joined, and keeps the release.

    By hand all go back to the one before all the same.
    """
    job = Job(fleet, three, "systemd", "keeps")
    job.write("env = { MORE = '1' }\n")
    apply = job.start()
    wait_until(lambda: "" if all(map(timers, three)) else "timers on all hosts", 60)
    os.killpg(apply.pid, signal.SIGKILL)
    apply.communicate()

    wait_until(lambda: "no timers" if any(map(timers, three)) else "", HEALED_S)
    assert job.desk.is_whole(WORLD) == ""
    assert len(job.releases()) == 1
    assert job.releases() != job.release
    assert json.loads(job.desk.run("apply", "--yes", "--json").stdout)["changed"] is False

    inventory = str(job.desk.folder / "inventory.toml")
    back = fleet.controller(("rlxdeploy", "rollback", "-i", inventory, "--yes"), timeout=RUN_S)
    assert back.returncode == 0, back
    assert job.stands() == ""
    job.desk.run("destroy", "--yes")
