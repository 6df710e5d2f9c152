"""What is in the way between hosts is found before anything is changed, and named."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.fleet.desk import Desk, differences, footprints, logins
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until
from tests.fleet.harness.spec import HostSpec

PORT = 29500
CONTROLLER = "10.77.0.1"
WAIT_S = 20.0
# No host needs Python for it.
SLEEPS = 'command = ["/bin/sleep", "600"]'
ELSEWHERE = "10.99.0.1"


@pytest.fixture(scope="module")
def three(fleet: Fleet) -> Iterator[list[Host]]:
    """Give an old and a new host, and one without Python."""
    old, new, bare = (
        HostSpec(release="bullseye"),
        HostSpec(release="trixie"),
        HostSpec(python=False),
    )
    with fleet.lend(old, new, bare) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def desk(fleet: Fleet) -> Desk:
    return Desk(fleet, "flight")


def refused(desk: Desk, hosts: list[Host]) -> tuple[dict[str, Any], str]:
    """Apply, see that nothing has changed, and return the preflight and what a person reads."""
    before = footprints(hosts)
    ran = desk.run("apply", "--yes", "--json", code=1)
    document = json.loads(ran.stdout)
    assert (document["exit"], document["changed"], document["preflight"]["ok"]) == (1, False, False)
    assert "Nothing was changed on any host." in ran.stderr
    assert differences(before, hosts) == []
    return document["preflight"], ran.stderr


@contextmanager
def walled(host: Host, action: Any, source: Host) -> Iterator[None]:  # noqa: ANN401 - a literal
    host.firewall(action, port=PORT, source=source.address)
    try:
        yield
    finally:
        host.open_firewall()


@pytest.mark.parametrize(("action", "how"), [("DROP", "timed out"), ("REJECT", "refused")])
def test_a_firewall_between_two_ranks_is_found(
    desk: Desk, three: list[Host], action: str, how: str
) -> None:
    """One that drops and one that rejects differ, and both ends are named."""
    called, caller, _ = three
    desk.write_hosts([called, caller], job=SLEEPS)
    with walled(called, action, caller):
        matrix, said = refused(desk, [called, caller])

    (link,) = matrix["links"]
    assert (link["from_host"], link["to_host"], link["how"]) == (caller.name, called.name, how)
    ends = f"rank 1 on {caller.name} to rank 0 on {called.name} at {called.address}:{PORT}"
    assert f"{ends}: {how}" in said
    assert "a firewall" in said


@contextmanager
def another_net(host: Host) -> Iterator[None]:
    host.exec(("ip", "address", "add", f"{ELSEWHERE}/24", "dev", "eth0"))
    try:
        yield
    finally:
        host.exec(("ip", "address", "delete", f"{ELSEWHERE}/24", "dev", "eth0"))


def test_an_address_in_a_net_that_others_cannot_reach_is_found(
    desk: Desk, three: list[Host]
) -> None:
    """The default route leads nowhere, which is silence; a route that says no is told as such."""
    far, caller, _ = three
    nodes = [
        f'ssh = "{far.name}"\naddr = "{ELSEWHERE}:{PORT}"',
        f'ssh = "{caller.name}"\naddr = "{caller.address}:{PORT}"',
    ]
    desk.write(nodes, job=SLEEPS)
    with another_net(far):
        silent, _ = refused(desk, [far, caller])
        caller.exec(("ip", "route", "add", "unreachable", "10.99.0.0/24"))
        try:
            unreachable, _ = refused(desk, [far, caller])
        finally:
            caller.exec(("ip", "route", "delete", "unreachable", "10.99.0.0/24"))

    assert [link["how"] for link in silent["links"]] == ["timed out"]
    assert [link["how"] for link in unreachable["links"]] == ["no route"]


def test_a_port_in_use_names_its_holder(fleet: Fleet, desk: Desk, three: list[Host]) -> None:
    """Pid, command and unit of a stranger; of another job of ours, how it is stopped."""
    held, other, _ = three
    desk.write_hosts([held, other], job=SLEEPS)
    serve = ("python3", "-m", "http.server", str(PORT))
    held.exec(("systemd-run", "--unit=squatter", *serve))
    wait_until(lambda: "" if held.dial(held.address, PORT) == "connected" else "http", WAIT_S)
    pid = held.exec(("systemctl", "show", "-p", "MainPID", "--value", "squatter")).stdout.strip()
    taken = desk.run("apply", "--yes", code=1).stderr
    held.exec(("systemctl", "stop", "squatter"))
    assert f"port {PORT} on {held.name} is held by pid {pid} (" in taken
    assert f"http.server {PORT}) of unit squatter.service; stop it, or write another port" in taken

    first = Desk(fleet, "earlier")
    alone = f'ssh = "{held.name}"\naddr = "{held.address}:{PORT}"\nbind = "{held.address}"'
    listens = f'command = ["python3", "-m", "http.server", "{PORT}"]'
    first.write([alone], job=listens)
    first.run("apply", "--yes")
    taken = desk.run("plan", code=1).stderr
    first.run("destroy", "--yes")
    assert "of unit rlx-earlier@0.service for the job earlier" in taken
    assert f"`rlxdeploy stop {first.folder}/inventory.toml`" in taken


def test_a_stranger_at_the_address_is_found(fleet: Fleet, desk: Desk, three: list[Host]) -> None:
    """A forward that leads to somebody else is not taken for the rank."""
    behind, caller, _ = three
    argv = (sys.executable, "-m", "http.server", str(PORT), "--bind", CONTROLLER)
    server = fleet.spawn(argv)
    try:
        wait_until(lambda: "" if caller.dial(CONTROLLER, PORT) == "connected" else "http", WAIT_S)
        forwarded = f'addr = "{CONTROLLER}:{PORT}"\nbind = "{behind.address}"'
        nodes = [f'ssh = "{behind.name}"\n{forwarded}', f'ssh = "{caller.name}"']
        desk.write(nodes, job=SLEEPS)
        matrix, said = refused(desk, [behind, caller])
    finally:
        server.kill()
        server.communicate()

    (link,) = matrix["links"]
    assert link["how"] == "a stranger answered"
    assert f"to rank 0 on {behind.name} at {CONTROLLER}:{PORT}: a stranger answered (it " in said


def test_a_host_without_python_is_not_proven(desk: Desk, three: list[Host]) -> None:
    """It is neither green nor a failure: the others are tried, and the apply goes on."""
    *_, bare = three
    desk.write_hosts(three, job=SLEEPS)
    before = [logins(host) for host in three]
    applied = desk.run("apply", "--yes").stdout
    assert [logins(host) for host in three] == [count + 1 for count in before]
    desk.run("destroy", "--yes")

    assert "preflight: 1 of 3 links answered in " in applied
    assert ", 2 not proven" in applied
    why = f"{bare.name}: it has no python3, so nobody listens or dials there"
    assert f"rank 2 to ranks 0\N{EN DASH}1: not proven: {why}" in applied


def test_a_clock_that_is_off_is_in_nobodys_way(desk: Desk, three: list[Host]) -> None:
    """One hour ahead on one host: links are proven, ranks join, a second apply changes nothing."""
    right, ahead, _ = three
    desk.write_hosts([right, ahead])
    ahead.shift_clock("+1h")
    try:
        applied = desk.json("apply", "--yes")
        again = desk.json("apply", "--yes")
        desk.run("destroy", "--yes")
    finally:
        ahead.write("/etc/environment", "")

    assert [link["how"] for link in applied["preflight"]["links"]] == ["answered"]
    assert (applied["joined"], again["changed"]) == (True, False)
