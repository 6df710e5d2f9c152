"""The scan on wires: hosts on the controller's own subnet, and a subnet behind a router."""

import json
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.desk import Desk
from tests.fleet.harness.fleet import Fleet, Lend
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import run, wait_until

# The controller's own process: it scans a subnet and prints what it found, and what it cost.
SCAN = """
import errno, json, resource, sys, threading, time
from ipaddress import ip_network
from rlxdeploy.edge.here import own_network
from rlxdeploy.edge.scan import own_pace, scan
from rlxdeploy.facts.sweep import sweep
from rlxdeploy.model.host import Host
stop, ended = threading.Event(), float(sys.argv[2]) if sys.argv[2:] else float("inf")
said, before = [], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.monotonic()
def tell(now):
    said.append(now)
    if time.monotonic() - started >= ended:
        stop.set()
addresses = sweep(ip_network(sys.argv[1]), own_network(Host("local")))
found = scan(addresses, tell=tell, stop=stop)
print(json.dumps({
    "found": list(found.found), "seconds": found.seconds, "estimate": said[0].left,
    "tried": found.tried, "pace": own_pace(4).share,
    "failed": {errno.errorcode[number]: count for number, count in found.failed.items()},
    "kibibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before,
}))
"""
TIMEOUT_S = 0.3
HOLE = "10.78.0.0/16"
ALIVE = ("10.78.0.1", "10.78.77.7", "10.78.255.254")

# Behind the controller: a router that drops what it has no host for, and three hosts of its own.
KNOCK = "import socket, sys; socket.create_connection((sys.argv[1], 22), 1).close()"
LISTEN = (
    "import socket, time; s = socket.create_server(('', 22)); print(flush=True); time.sleep(300)"
)


def scan(fleet: Fleet, *words: str) -> dict[str, Any]:
    root = str(Path(__file__).parents[2])
    ran = fleet.controller((sys.executable, "-c", SCAN, *words), env={"PYTHONPATH": root})
    assert ran.returncode == 0, ran.stderr
    said: dict[str, Any] = json.loads(ran.stdout)
    return said


def ip(namespace: str, *commands: str) -> None:
    run(("ip", "-n", namespace, "-batch", "-"), stdin="\n".join(commands) + "\n")


@pytest.fixture(scope="module")
def hole(fleet: Fleet) -> Iterator[None]:
    """Give a router on the lan behind which only three addresses of a /16 live."""
    name, switch = f"{fleet.token}-hole", f"{fleet.token}-switch-lan"
    run(("ip", "netns", "add", name))
    run(("ip", "netns", "exec", name, "sysctl", "--quiet", "net.ipv4.ip_forward=1"))
    ip(
        switch,
        f"link add hole type veth peer name eth0 netns {name}",
        "link set hole master br0 up",
        f"route add {HOLE} via 10.77.0.253",
    )
    alive = (f"address add {address}/32 dev lo" for address in ALIVE)
    router = "address add 10.77.0.253/24 dev eth0"
    ip(name, router, "link set eth0 up", "link set lo up", f"route add blackhole {HOLE}", *alive)
    listener = fleet.spawn(("ip", "netns", "exec", name, sys.executable, "-c", LISTEN))
    try:
        assert listener.stdout is not None
        listener.stdout.readline()
        knock = (sys.executable, "-c", KNOCK, ALIVE[0])
        wait_until(lambda: "" if fleet.controller(knock).returncode == 0 else "the router", 10)
        # The scan shall have to find the router first, as anybody's does.
        ip(switch, "neighbour flush dev br0")
        yield
    finally:
        listener.kill()
        listener.communicate()
        ip(switch, f"route delete {HOLE}")
        run(("ip", "netns", "delete", name))


@pytest.mark.quiet
def test_a_24_takes_about_one_timeout(fleet: Fleet, six: list[Host]) -> None:
    """Every host on the controller's subnet is found, and the controller itself is not."""
    said = scan(fleet, "10.77.0.0/24")

    assert {host.address for host in six} <= set(said["found"])
    assert "10.77.0.1" not in said["found"]
    assert said["tried"] == 253
    assert said["seconds"] < 3 * TIMEOUT_S


def test_the_port_that_answers_is_the_one_that_is_dialled(fleet: Fleet, hosts: Lend) -> None:
    """A host whose sshd is on another of the scanned ports is asked there, and is a node there.

    One that is excluded hears nothing at all; how many kept silent is told.
    """
    other, usual, excluded = hosts(3)
    other.write("/etc/ssh/sshd_config.d/port.conf", "Port 2222\n")
    other.exec(("systemctl", "restart", "ssh.service"))
    with (fleet.home / ".ssh/known_hosts").open("a") as known:
        known.write(f"[{other.address}]:2222 {other.host_key()}\n")
    desk = Desk(fleet, "ports")
    search = '[discover]\nsubnet = "10.77.0.0/24"\nscan_ports = [2222, 22]\n'
    desk.write((), tables=f'{search}exclude = ["{excluded.address}"]\n')
    knocks = excluded.sshd_log().count("Connection from")

    said = desk.json("probe")

    found = said["hosts"]
    assert excluded.address not in found
    assert excluded.sshd_log().count("Connection from") == knocks
    told = [one["message"] for one in said["notices"]]
    assert any(re.match(r"\d+ of 504 connects to ports 2222, 22 in 10.77", one) for one in told)

    assert {f"ssh://{other.address}:2222", usual.address} <= found.keys()
    assert other.address not in found
    assert found[f"ssh://{other.address}:2222"]["addr"] == f"{other.address}:29500"


@pytest.mark.quiet
@pytest.mark.usefixtures("hole")
def test_a_routed_16_takes_seconds_and_no_memory(fleet: Fleet) -> None:
    """Three hosts of 65,534 are found where nothing answers for the others."""
    said = scan(fleet, HOLE)

    assert said["found"] == list(ALIVE)
    assert said["tried"] == 65534
    assert said["seconds"] < 15
    assert said["kibibytes"] < 16 << 10


@pytest.mark.quiet
def test_an_on_link_16_is_paced_and_says_so_first(fleet: Fleet) -> None:
    """The estimate is said before a packet is sent, and no more is begun than it promises.

    In its first second no more than the pace is tried, and from then on so many a second: the
    neighbour table never overflows, and the machine keeps its other neighbours.
    """
    switch = f"{fleet.token}-switch-lan"
    ip(switch, "address add 10.79.0.1/16 dev br0")
    try:
        said = scan(fleet, "10.79.0.0/16", "1.5")
    finally:
        ip(switch, "address delete 10.79.0.1/16 dev br0")

    pace = said["pace"]
    assert said["estimate"] == pytest.approx(65533 / pace, rel=0.5)
    assert said["estimate"] > 10
    assert pace * 0.5 < said["tried"] <= pace * max(1.0, said["seconds"]) + 1


@pytest.mark.parametrize(
    ("subnet", "route", "word", "count"),
    [
        ("10.98.0.0/29", "prohibit", "EACCES", 6),
        ("10.98.0.0/29", "blackhole", "EINVAL", 6),
        ("10.98.0.0/29", "", "ENETUNREACH", 6),
        ("fd98::/125", "", "ENETUNREACH", 7),
    ],
)
def test_what_keeps_us_from_connecting_is_counted(
    fleet: Fleet, subnet: str, route: str, word: str, count: int
) -> None:
    """A route that forbids, throws away or lacks is this machine's own, and ends nothing."""
    switch = f"{fleet.token}-switch-lan"
    if route:
        ip(switch, f"route add {route} {subnet}")
    try:
        said = scan(fleet, subnet)
    finally:
        if route:
            ip(switch, f"route delete {route} {subnet}")

    assert said["failed"] == {word: count}


def test_a_subnet_that_cannot_be_reached_is_a_warning_with_a_remedy(fleet: Fleet) -> None:
    """The plan that finds nobody says why nobody was found."""
    desk = Desk(fleet, "cut")
    desk.write((), tables='[discover]\nsubnet = "fd98::/125"\n')

    said = desk.run("plan", code=1).stderr

    assert "7 of 7 connects to fd98::/125 could not be tried: no route leads there" in said
    assert "add one, or list the machines in ssh_hosts" in said
    assert "nothing in fd98::/125 answers on port 22" in said


@pytest.mark.usefixtures("hole")
def test_ctrl_c_says_what_was_found_so_far(fleet: Fleet, tmp_path: Path) -> None:
    """The command ends with 130, and names whom it has found by then."""
    inventory = tmp_path / "inventory.toml"
    inventory.write_text(f'[discover]\nsubnet = "{HOLE}"\n')
    process = fleet.spawn(("rlxdeploy", "plan", str(inventory)))
    assert process.stderr is not None
    assert process.stderr.readline().startswith("scan: 0/65534, 0 hosts found")
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)

    assert process.returncode == 130
    assert re.search(
        r"interrupted \(\d+ of 65534 connects tried\); found so far: 10\.78\.0\.1", said
    )
