"""Releases that cannot join, on hosts of three releases and under every launch: all go back."""

import re
from typing import Any

import pytest

from tests.fleet.desk import differences, footprints
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.takeback import LOGINS, MORE, NEXT_PORT, Job

BROKEN = 'ready = "notify"\ncommand = ["sh", "-c", "echo broken; exit 9"]\n'
# On one host it has another key than the group.
OTHER_KEY = "/etc/other-key"
WRONG_KEY = f"""\
ready = "notify"
command = ["sh", "-c", '''
  [ ! -f {OTHER_KEY} ] || export RLX_KEY_FILE={OTHER_KEY}; exec python3 -m rlxdeploy.runtime
''']
"""

# Each waits for several groups to form.
pytestmark = pytest.mark.timeout(400, func_only=True)


@pytest.mark.parametrize("launch", LOGINS)
def test_a_release_that_cannot_join_is_taken_back_everywhere(
    fleet: Fleet, lingering: list[Host], launch: str
) -> None:
    """A bad command, a wrong key and a port blocked on one host end the wait; all are as before.

    So they are after a release that does join, by hand.
    """
    before = footprints(lingering)
    job = Job(fleet, lingering, launch, "takeback")

    goes_back_at_once(job, BROKEN)
    goes_back_from_a_wrong_key(job)
    goes_back_from_a_blocked_port(job)
    goes_back_by_hand(job)

    job.desk.run("destroy", "--yes")
    assert differences(before, lingering) == []


def goes_back_at_once(job: Job, release: str) -> dict[str, Any]:
    """Apply what ends as soon as it starts, and see the group before on all hosts, whole."""
    job.write(release)
    document = job.desk.json("apply", "--yes", code=3)
    assert (document["rolled_back"], document["rejoined"]) == (True, True)
    assert {host["state"] for host in document["hosts"].values()} == {"gone back"}
    assert {host["release"] for host in document["hosts"].values()} == {job.release}
    assert document["waited"] < 20
    assert job.stands() == ""
    return document


def goes_back_from_a_wrong_key(job: Job) -> None:
    """Give one host another key, and see that it is the one that is blamed."""
    odd = job.hosts[1]
    odd.write(OTHER_KEY, "5a" * 32 + "\n", mode=0o600, user=LOGINS[job.launch])
    refused = goes_back_at_once(job, WRONG_KEY)
    odd.exec(("rm", OTHER_KEY))
    assert {one["rank"] for one in refused["blamed"]} == {1}
    assert "ended with exit 78" in refused["blamed"][0]["why"]


def goes_back_from_a_blocked_port(job: Job) -> None:
    """Move to ports of which one is blocked, and read that all hosts are back on those before."""
    said = job.is_cut_off(NEXT_PORT)
    job.hosts[1].open_firewall()
    for host in job.hosts:
        assert re.search(rf"^  {host.name} +{job.release} +\d +gone back$", said, re.MULTILINE)
    assert f"release {job.release} has joined again in " in said
    assert job.stands() == ""


def goes_back_by_hand(job: Job) -> None:
    """Apply a release that joins, and name the one before as the one to go back to."""
    job.write(MORE)
    assert job.desk.json("apply", "--yes")["release"] != job.release
    job.back(job.release)
    assert job.stands() == ""
