"""What hosts of three releases decide by themselves, when the controller or a way to it is gone."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.fleet.desk import RUN_S, logins
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until
from tests.fleet.takeback import HEALED_S, LOGINS, MORE, PORT, Job, armed, kill, timers

NEVER = 'ready = "notify"\ncommand = ["sleep", "600"]\n'
# It joins, but not before there was time to break something.
LATE = 'ready = "notify"\ncommand = ["sh", "-c", "sleep 5; exec python3 -m rlxdeploy.runtime"]\n'

# Each waits for a timer or two, and for groups to form.
pytestmark = pytest.mark.timeout(400, func_only=True)


@pytest.fixture(scope="module")
def standing(fleet: Fleet, lingering: list[Host]) -> Iterator[Job]:
    """Give a group under system units that the tests share."""
    job = Job(fleet, lingering, "systemd", "shared")
    yield job
    job.desk.run("destroy", "--yes")


@pytest.fixture
def job(standing: Job) -> Job:
    """Give the shared group, on whichever release the test before has left it."""
    (standing.release,) = standing.releases()
    assert standing.stands() == ""
    return standing


@pytest.mark.parametrize("launch", LOGINS)
def test_hosts_go_back_without_a_controller(
    fleet: Fleet, lingering: list[Host], launch: str
) -> None:
    """Of two at once one leaves; the other is killed while ranks join that never will.

    One host loses its power meanwhile, where that does not end ranks and timer for good.
    """
    job = Job(fleet, lingering, launch, "alone")
    job.write(NEVER)
    apply = winner(job)
    armed(lingering)
    kill(apply)
    if launch != "process":
        lingering[2].power_cut()
        lingering[2].power_on()

    wait_until(job.stands, HEALED_S)
    job.desk.run("destroy", "--yes")


def winner(job: Job) -> subprocess.Popen[str]:
    """Begin two applies at once; one leaves and says who has the job, the other is returned."""
    both = [job.start() for _ in range(2)]
    wait_until(lambda: "" if any(one.poll() is not None for one in both) else "a loser", 60)
    won, lost = sorted(both, key=lambda one: one.poll() is not None)
    said, why = lost.communicate()
    assert (lost.returncode, "held by apply by" in why) == (5, True), said + why
    return won


def test_a_good_release_outlives_its_controller(job: Job) -> None:
    """Killed after GO: every host sees that its ranks have joined, and keeps the release.

    By hand all go back to the one before all the same.
    """
    job.write(MORE)
    apply = job.start()
    armed(job.hosts)
    kill(apply)

    wait_until(lambda: "no timers" if any(map(timers, job.hosts)) else "", HEALED_S)
    assert job.desk.is_whole(len(job.hosts)) == ""
    assert len(job.releases()) == 1
    assert job.release not in job.releases()
    assert json.loads(job.desk.run("apply", "--yes", "--json").stdout)["changed"] is False

    job.back()
    assert job.stands() == ""


def test_a_wall_that_the_group_before_meets_too_ends_both_waits(job: Job) -> None:
    """No preflight looks where PEERS stay the same; once it is gone the group before is READY."""
    assert "the release before was started again and has not joined" in job.is_cut_off(PORT)
    job.hosts[1].open_firewall()
    wait_until(job.stands, HEALED_S)


def test_a_connection_that_breaks_after_go_rolls_nothing_back(job: Job) -> None:
    """The host is reached again and told to stay: one release, a new one, on all hosts."""
    cut = job.hosts[0]
    job.write(LATE + MORE)
    before = logins(cut)
    apply = job.start()
    armed(job.hosts)
    cut.exec(("pkill", "-f", "^sshd(-session)?: root@notty"))
    said, why = apply.communicate(timeout=RUN_S)

    assert apply.returncode == 0, said + why
    assert logins(cut) == before + 2
    assert not any(map(timers, job.hosts))
    assert job.desk.is_whole(len(job.hosts)) == ""
    assert job.release not in job.releases()
