"""The same line as somebody else than root, and on hosts that lack what others have."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.fleet.desk import Desk, differences, footprints, logins
from tests.fleet.harness.fleet import Fleet, Lend
from tests.fleet.harness.host import Host
from tests.fleet.harness.spec import HostSpec


@pytest.fixture(scope="module")
def three(fleet: Fleet) -> Iterator[list[Host]]:
    """Give one host of each release."""
    with fleet.lend(3) as hosts:
        yield hosts


@contextmanager
def deployed(desk: Desk, hosts: list[Host], launch: str) -> Iterator[str]:
    """Give what apply said while the group stands; then destroy, and see nothing left."""
    before = footprints(hosts)
    seen = [logins(host) for host in hosts]
    said = desk.run("apply", "--yes").stdout
    assert [logins(host) for host in hosts] == [count + 1 for count in seen]
    assert said.count(f"  {launch}  ") == len(hosts)
    assert desk.is_whole(len(hosts)) == ""
    yield said
    assert desk.json("apply", "--yes")["changed"] is False
    assert desk.run("logs").stdout.count("joined as rank") >= len(hosts)
    desk.run("destroy", "--yes")
    assert differences(before, hosts) == []


def test_a_login_user_deploys_to_the_system_by_sudo(fleet: Fleet, three: list[Host]) -> None:
    """With sudo -n the units are the system's and root's, and the ranks run as the login user."""
    desk = Desk(fleet, "sudoer")
    desk.write_hosts(three, tables='[ssh]\nuser = "ops"')
    with deployed(desk, three, "systemd"):
        for host in three:
            unit = host.exec(("systemctl", "show", "-p", "User", "rlx-sudoer@*"))
            env = host.exec(("sh", "-c", "stat -c '%a %U' /var/lib/rlx/sudoer/current/env/*"))
            assert (unit.stdout, env.stdout) == ("User=ops\n", "600 root\n")


def test_sudo_that_asks_a_password_is_no_way_to_root(fleet: Fleet, three: list[Host]) -> None:
    """It is not asked, so that no account is locked; where systemd is wanted that is an error."""
    desk = Desk(fleet, "asked")
    desk.write_hosts(three[:1], tables='[ssh]\nuser = "asks"\nbecome = "sudo"')
    refused = desk.run("plan", code=1).stderr
    assert f"ssh.become: sudo -n does not make asks root on {three[0].name}" in refused


def test_a_users_own_manager_is_taken_where_it_lingers(fleet: Fleet, three: list[Host]) -> None:
    """Without sudo the user's systemd starts the ranks, unless it would end with the session."""
    desk = Desk(fleet, "lingerer")
    desk.write_hosts(three, tables='[ssh]\nuser = "nosudo"', job='launch = "systemd-user"')
    refused = desk.run("plan", code=1).stderr
    assert refused.count("`loginctl enable-linger nosudo` lets them live on") == len(three)

    desk.write_hosts(three, tables='[ssh]\nuser = "nosudo"')
    assert desk.run("plan").stdout.count("process launch is taken") == len(three)

    for host in three:
        host.linger("nosudo")
    with deployed(desk, three, "systemd-user") as said:
        assert "/home/nosudo/.config/systemd/user/rlx-lingerer@.service" in said


def test_a_host_without_systemd_runs_a_supervisor(fleet: Fleet, hosts: Lend) -> None:
    """Process launch is taken by itself where systemd is not PID 1, and the plan says its limit."""
    bare = hosts(HostSpec(systemd=False, release="bullseye"), HostSpec(systemd=False))
    desk = Desk(fleet, "bare")
    desk.write_hosts(bare)
    with deployed(desk, bare, "process") as said:
        assert "process launch does not survive a reboot" in said
