"""Standby and draining nodes on real hosts: one host dies and another takes its rank."""

from tests.fleet.desk import Desk, differences, footprints, standing
from tests.fleet.harness.fleet import Fleet, Lend
from tests.fleet.harness.host import Host

# A dead host is given up soon.
HASTY = "[ssh]\nconnect_timeout = 3\n"
HELD = r"""
find /var/lib/rlx/roles /etc/systemd/system -path '*rlx*' -type f -printf '%f\n'
ls /var/lib/rlx/store
"""


def node(host: Host, more: str = "") -> str:
    return f'ssh = "{host.name}"\naddr = "{host.address}:29500"\n{more}'


def held(host: Host) -> set[str]:
    """Return the names of our files on *host*."""
    return set(host.exec(("sh", "-c", HELD)).stdout.split())


def test_a_standby_takes_the_rank_of_a_host_that_died(fleet: Fleet, hosts: Lend) -> None:
    """It holds the files before, has the rank after, and the dead one drains when it is back."""
    first, principal, standby = everybody = hosts(3)
    before = footprints(everybody)
    desk = Desk(fleet, "roles")
    waits = f'role = "standby"\nstandby_for = "{principal.address}:29500"\n'
    desk.write([node(first), node(principal), node(standby, waits)], tables=HASTY)

    assert f"without a rank: {standby.name}" in desk.run("apply", "--yes").stdout
    assert desk.is_whole(2) == ""
    assert {rank["host"] for rank in desk.ranks()} == {first.name, principal.name}
    common = held(standby) & held(first)
    assert held(standby) - common == {"stored"}
    assert held(first) - common >= {"0.env", "rlx-roles@.service"}
    assert len(common - {"deployment.json", "key"}) == 1
    stood = [standing(host) for host in (first, principal)]
    again = desk.run("apply", "--yes").stdout
    assert "Nothing to change" in again, again
    assert [standing(host) for host in (first, principal)] == stood

    principal.power_cut()
    promoted = desk.run("apply", "--yes", "--promote", f"{standby.address}:29500").stdout
    assert f"{standby.name} is promoted: it takes rank 1 of {principal.name}" in promoted
    assert [rank["host"] for rank in desk.ranks()] == [first.name, standby.name]
    assert desk.is_whole(2) == ""

    principal.power_on()
    desk.write([node(first), node(principal, 'role = "draining"\n'), node(standby)], tables=HASTY)
    desk.run("apply", "--yes")
    assert differences({principal.name: before[principal.name]}, [principal]) == []
    assert desk.is_whole(2) == ""
    assert [rank["host"] for rank in desk.ranks()] == [first.name, standby.name]

    desk.run("destroy", "--yes")
    assert differences(before, everybody) == []
