"""A host behind a bastion: what `trust` adds to known_hosts, and a job that runs there."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fleet.desk import Desk, one_login_each
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.spec import HostSpec


def trust(fleet: Fleet, host: Host, code: int = 0) -> dict[str, Any]:
    """Return the document of `rlxdeploy trust` without an inventory."""
    ran = fleet.controller(("rlxdeploy", "trust", host.name, "--yes", "--json"))
    assert ran.returncode == code, ran
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def fingerprint(host: Host) -> str:
    shown = host.exec(("ssh-keygen", "-lf", "/etc/ssh/ssh_host_ed25519_key.pub")).stdout
    return shown.split()[1]


@pytest.fixture(scope="module")
def inner(fleet: Fleet) -> Iterator[Host]:
    """Give a host behind the bastion."""
    with fleet.lend(HostSpec(place="inner")) as (host,):
        yield host


@pytest.fixture
def strangers(fleet: Fleet, inner: Host) -> Iterator[tuple[Host, Host]]:
    """Give the bastion and the host behind it, neither of them known."""
    fleet.bastion.distrust()
    inner.distrust()
    yield fleet.bastion, inner
    fleet.bastion.trust()


def test_a_host_behind_a_bastion_becomes_known_with_its_way(
    fleet: Fleet, strangers: tuple[Host, Host]
) -> None:
    """Both keys are the hosts' own, OpenSSH then opens the way, and a changed one is refused."""
    bastion, inner = strangers
    assert fleet.ssh(inner, "true").returncode != 0

    added = trust(fleet, inner)["added"]

    shown = [(one["host"], one["fingerprint"]) for one in added]
    assert shown == [(one.name, fingerprint(one)) for one in (bastion, inner)]
    assert fleet.ssh(inner, "echo in").stdout == "in\n"
    assert trust(fleet, inner)["added"] == []

    known = fleet.home / ".ssh" / "known_hosts"
    before = known.read_text()
    inner.new_host_key()
    failed = trust(fleet, inner, code=4)["failed"][inner.name]
    assert fingerprint(inner) in failed["why"]
    assert added[1]["fingerprint"] in failed["why"]
    assert known.read_text() == before


@pytest.mark.parametrize("client", ["fabric", "openssh"])
def test_accept_new_takes_in_strangers_and_refuses_a_changed_key(
    fleet: Fleet, strangers: tuple[Host, Host], client: str
) -> None:
    """The plan says whose key went where, later ones say nothing, and no changed key passes."""
    bastion, inner = strangers
    known = fleet.home / ".ssh" / "known_hosts"
    desk = Desk(fleet, "newcomer")
    desk.write_hosts([inner], tables=f'[ssh]\nhost_keys = "accept-new"\nclient = "{client}"')

    said = desk.run("plan").stdout
    for host in (bastion, inner):
        key = f"{host.name}: its key was unknown; ssh-ed25519 {fingerprint(host)}"
        assert f"notice: ssh.host_keys: {key} is now in {known}" in said
        assert host.host_key() in known.read_text()
    assert "ssh.host_keys" not in desk.run("plan").stdout

    before, old = known.read_text(), fingerprint(inner)
    inner.new_host_key()
    for command in (("plan",), ("apply", "--yes")):
        refused = desk.run(*command, code=4).stderr
        assert f"the host key of {inner.name} has changed" in refused
        assert {old, fingerprint(inner)} <= set(refused.replace(",", " ").split())
    assert known.read_text() == before


def test_a_job_behind_a_bastion_costs_one_login_there(fleet: Fleet, inner: Host) -> None:
    """The bastion has a rank too: both hosts, and the way from one to the other, are one login."""
    inner.trust()
    both = [fleet.bastion, inner]
    desk = Desk(fleet, "behind")
    desk.write_hosts(both)

    with one_login_each(both):
        assert "2 of 2 ranks joined" in desk.run("apply", "--yes").stdout
    with one_login_each(both):
        desk.run("destroy", "--yes")
