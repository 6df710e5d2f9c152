"""A group that is found: one mixture of sixteen hosts, searched, settled, applied, written down."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fleet.desk import Desk, differences, footprints, standing
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.images import RELEASES
from tests.fleet.harness.local import wait_until
from tests.fleet.harness.spec import HostSpec

INVENTORY = """\
[job]
name = "found"
[discover]
ssh_hosts = ["behind1", "behind2", "twice", "down"]
subnet = "10.77.0.0/24"
mdns = true
exclude = ["bastion"]
"""
SERVICE = """\
<?xml version="1.0" standalone='no'?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name replace-wildcards="yes">%h</name>
<service><type>_ssh._tcp</type><port>2222</port></service></service-group>
"""
TRACES = """\
ls -d /var/lib/rlx/found /run/rlx/found /etc/systemd/system/*rlx-found* 2>/dev/null
systemctl list-units --all --no-legend --plain 'rlx-found*'
"""
NAMES = ("behind1", "behind2", "twice", "down", "untrusted", "closed", "clone", "loud1", "loud2")
PLAIN = tuple(f"plain{number}" for number in range(1, 7))
ATTEMPT = re.compile(r"(?:Accepted|Failed) \S+ for \S+ from")


@dataclass(frozen=True, slots=True)
class Mixture:
    """The hosts by name, and the desk with an inventory of seven lines."""

    hosts: dict[str, Host]
    desk: Desk

    @property
    def members(self) -> list[str]:
        """What each node of the group is called, in rank order."""
        scanned = sorted((*PLAIN, "clone"), key=lambda name: self.hosts[name].port.number)
        loud = [f"ssh://{self.hosts[name].address}:2222" for name in ("loud1", "loud2")]
        return [
            *("behind1", "behind2", "twice"),
            *(self.hosts[name].address for name in scanned),
            *loud,
        ]


@dataclass(frozen=True, slots=True)
class Searched:
    """What a plan was made of, how often it tried each host, and what it left on them."""

    plan: Mapping[str, Any]
    tries: Mapping[str, int]
    left: list[str]


@pytest.fixture(scope="module")
def mixture(fleet: Fleet) -> Iterator[Mixture]:
    """Give hosts of every kind on the lan.

    Two take SSH from the bastion only, one is found under two names, two take it on a port that
    only mDNS tells, one has another's machine-id, one is not trusted, one lets nobody in, one is
    down; with the bastion they are sixteen.
    """
    bastion = fleet.bastion
    specs = [
        HostSpec(name=name, release=RELEASES[turn % len(RELEASES)])
        for turn, name in enumerate((*NAMES, *PLAIN))
    ]
    with fleet.lend(*specs) as lent:
        hosts = {host.name: host for host in lent} | {"bastion": bastion}
        hosts["clone"].write("/etc/machine-id", hosts["plain1"].at("/etc/machine-id").read_text())
        hosts["untrusted"].distrust()
        hosts["closed"].at("/root/.ssh/authorized_keys").unlink()
        hosts["down"].power_cut()
        for name in ("behind1", "behind2"):
            hosts[name].firewall("DROP", port=22, source="10.77.0.1")
        for name in ("loud1", "loud2"):
            announce(fleet, hosts[name])
        config = fleet.home / ".ssh/config"
        before = config.read_text()
        config.write_text(f"{before}Host behind1 behind2\n  ProxyJump bastion\n")
        desk = Desk(fleet, "found")
        (desk.folder / "inventory.toml").write_text(INVENTORY)
        yield Mixture(hosts, desk)
        config.write_text(before)


def announce(fleet: Fleet, host: Host) -> None:
    """Move sshd of *host* to port 2222, trusted there, and say so by mDNS alone."""
    host.write("/etc/ssh/sshd_config.d/port.conf", "Port 2222\n")
    host.exec(("systemctl", "restart", "ssh.service"))
    with (fleet.home / ".ssh/known_hosts").open("a") as known:
        known.write(f"[{host.address}]:2222 {host.host_key()}\n")
    host.write("/etc/avahi/services/ssh.service", SERVICE)
    host.exec(("systemctl", "start", "avahi-daemon.service"))
    journal = ("journalctl", "--unit", "avahi-daemon", "--output", "cat")
    wait_until(lambda: "" if "established" in host.exec(journal).stdout else "the service", 15)


@pytest.fixture(scope="module")
def searched(mixture: Mixture) -> Searched:
    """Plan once, and see what that was to hosts of every kind, taken or not."""
    asked = {name: host for name, host in mixture.hosts.items() if name not in ("down", "bastion")}
    kinds = ("bastion", "behind1", "untrusted", "closed", "loud1", "plain1")
    others = [mixture.hosts[name] for name in kinds]
    tries = {name: attempts(host) for name, host in asked.items()}
    before = footprints(others)
    plan = mixture.desk.json("plan")
    made = {name: attempts(host) - tries[name] for name, host in asked.items()}
    return Searched(plan, made, differences(before, others))


def test_the_plan_says_who_was_found_and_who_was_not_taken(
    mixture: Mixture, searched: Searched
) -> None:
    """Ranks follow the search; each host that is not taken is named with its reason."""
    hosts, plan = mixture.hosts, searched.plan
    assert len(hosts) == 16
    assert len(INVENTORY.splitlines()) <= 10

    told = "\n".join(json.dumps(notice) for notice in plan["notices"])

    assert [rank["host"] for rank in plan["ranks"]] == mixture.members
    addresses = [rank["address"] for rank in plan["ranks"]]
    assert addresses[0] == f"{hosts['behind1'].address}:29500"
    assert addresses[-1] == f"{hosts['loud2'].address}:29500"
    untrusted = f"{hosts['untrusted'].address}: found, not taken: not trusted: connect to"
    assert untrusted in told
    assert "is unknown: ssh-ed25519 SHA256:" in told
    closed = hosts["closed"].address
    assert f"{closed}: found, not taken: connect to {closed}:22: root is not let in" in told
    assert "down: listed, not taken" in told
    assert f"{hosts['twice'].address} is twice under another name" in told
    assert "have one machine-id and are taken for two machines" in told


def test_each_found_host_is_tried_once(searched: Searched) -> None:
    """One authentication attempt, also where it has two names; none before its key is trusted."""
    assert searched.tries == dict.fromkeys(searched.tries, 1) | {"untrusted": 0}


def attempts(host: Host) -> int:
    """Return how often anybody has tried to log in, by whatever method and with what success."""
    # Merged, since the clone's machine-id is not the one that its journal began with.
    return len(ATTEMPT.findall(host.journal("--unit=ssh", "--merge")))


def test_nobody_is_touched_by_a_search(searched: Searched) -> None:
    """No file, unit, process or port appears on a host of any kind, taken or not."""
    assert searched.left == []


def test_what_was_found_is_applied_and_stays(mixture: Mixture) -> None:
    """Twelve ranks join; a second apply finds the same and touches nothing."""
    desk = mixture.desk
    taken = [
        host
        for name, host in mixture.hosts.items()
        if name not in ("down", "bastion", "untrusted", "closed")
    ]

    applied = desk.run("apply", "--yes")
    assert "12 of 12 ranks joined" in applied.stdout
    assert desk.is_whole(12) == ""

    stood = [standing(host) for host in taken]
    assert desk.json("apply", "--yes")["changed"] is False
    assert [standing(host) for host in taken] == stood


def test_a_search_that_misses_a_member_does_not_let_it_go(mixture: Mixture) -> None:
    """One that is no longer announced stays; one that does not answer stops the plan by name."""
    desk, hosts = mixture.desk, mixture.hosts
    loud, lost = hosts["loud1"], hosts["plain1"]
    loud.exec(("systemctl", "stop", "avahi-daemon.socket", "avahi-daemon.service"))
    lost.firewall("REJECT", port=22, source="10.77.0.1")
    try:
        refused = desk.run("plan", code=4).stderr
        smaller = desk.run("plan", "--skip-unreachable").stdout.splitlines()
    finally:
        lost.open_firewall()
        loud.exec(("systemctl", "start", "avahi-daemon.service"))

    assert f"{lost.address}: survey: " in refused
    assert "it has ranks since the last apply" in refused
    assert smaller[0] == f"found: 11 ranks in a mesh on 11 hosts, without {lost.address}"
    rows = [line.split() for line in smaller if line[2:3].isdigit()]
    assert sorted(row[2] for row in rows) == sorted({*mixture.members} - {lost.address})
    told = [line for line in smaller if "not found this time, and asked all the same" in line]
    assert any(loud.address in line for line in told)


def test_resolve_writes_the_inventory_one_would_have_written(mixture: Mixture) -> None:
    """Each node by hand, no search; planned from that file the group is the same."""
    desk = mixture.desk
    text = desk.run("resolve").stdout
    written = tomllib.loads(text)

    assert "discover" not in written
    assert [node["ssh"] for node in written["node"]] == mixture.members
    assert [node["rank"] for node in written["node"]] == list(range(12))
    assert {key for node in written["node"] for key in node} == {
        *("addr", "ssh", "device", "rank", "python"),
    }
    (desk.folder / "inventory.toml").write_text(text)
    try:
        desk.run("plan", "--detailed-exitcode")
        assert desk.run("resolve").stdout == text
    finally:
        (desk.folder / "inventory.toml").write_text(INVENTORY)


def test_the_found_group_goes_without_a_trace(mixture: Mixture) -> None:
    """Destroy reaches each host of the record, searching for nobody."""
    mixture.desk.run("destroy", "--yes")

    for host in mixture.hosts.values():
        if host.name != "down":
            assert host.exec(("sh", "-c", TRACES)).stdout == ""
