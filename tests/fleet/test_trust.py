"""`trust` against real sshds: what it adds to known_hosts is what OpenSSH goes by."""

import json
from typing import Any

from tests.fleet.harness.fleet import Fleet, Lend
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


def test_a_host_behind_a_bastion_becomes_known_with_its_way(fleet: Fleet, hosts: Lend) -> None:
    """Both keys are the hosts' own, OpenSSH then opens the way, and a changed one is refused."""
    (inner,) = hosts(HostSpec(place="inner"))
    bastion = fleet.bastion
    try:
        bastion.distrust()
        inner.distrust()
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
    finally:
        bastion.trust()
