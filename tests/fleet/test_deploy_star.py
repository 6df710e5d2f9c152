"""A star whose workers nobody can dial: they stand behind a router that lets only SSH in."""

from collections.abc import Iterator

import pytest

from tests.fleet.desk import Desk
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.spec import HostSpec

HEAD = 'topology = "star"\nlaunch = "systemd"'
PORT = 29500


@pytest.fixture(scope="module")
def coordinator_and_workers(fleet: Fleet) -> Iterator[list[Host]]:
    """Give a host on the lan, then two behind the router."""
    new, old = (HostSpec(place="nat", release="trixie"), HostSpec(place="nat", release="bullseye"))
    with fleet.lend(HostSpec(), new, old) as hosts:
        yield hosts


def test_workers_behind_nat_join_their_coordinator(
    fleet: Fleet, coordinator_and_workers: list[Host]
) -> None:
    """They need no address, and join again after a failure; the coordinator's alone is in PEERS."""
    first, *workers = coordinator_and_workers
    desk = Desk(fleet, "star")
    nodes = [f'ssh = "{host.name}"' for host in workers]
    desk.write([*nodes, f'ssh = "{first.name}"\naddr = "{first.address}"\nrank = 0'], job=HEAD)
    desk.run("apply", "--yes")
    assert desk.is_whole(3) == ""
    assert first.dial(workers[0].address, PORT) != "connected"
    env = workers[0].exec(("sh", "-c", "cat /var/lib/rlx/star/current/env/*.env")).stdout
    assert f'PEERS="{first.address}:{PORT}"' in env.splitlines()

    epoch = desk.ranks()[0]["epoch"]
    workers[1].exec(("systemctl", "kill", "--signal=KILL", "rlx-star@2"))
    desk.await_whole(3, other_than=epoch)
    desk.run("destroy", "--yes")


def test_a_coordinator_whose_address_nobody_shares_is_asked_for_it(
    fleet: Fleet, coordinator_and_workers: list[Host]
) -> None:
    """Where the workers share no subnet with it, nothing is guessed."""
    desk = Desk(fleet, "nowhere")
    desk.write_hosts(coordinator_and_workers, job=HEAD)
    refused = desk.run("plan", code=1).stderr
    assert "no subnet is shared by all machines" in refused
    assert "write addr in [[node]]" in refused
