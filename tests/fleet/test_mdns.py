"""MDNS over the bridge: avahi announces and is asked, zeroconf asks and announces."""

import json
import re
import signal
import subprocess
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
from tests.fleet.harness.spec import HostSpec

ROOT = {"PYTHONPATH": str(Path(__file__).parents[2])}

# The controller's own processes: one browses and prints, one announces until it is ended.
BROWSE = """
import json, sys
from dataclasses import replace
from rlxdeploy.edge.here import own_network
from rlxdeploy.edge.mdns import browse
from rlxdeploy.facts.mdns import askable, sort_out
from rlxdeploy.model.host import Host
asked = askable(own_network(Host("local")), *sys.argv[2:])
gone = replace(asked[0], name="gone0")
done = browse((gone, *asked), float(sys.argv[1]))
heard = sort_out(done.answers, asked)
print(json.dumps({
    "asked": [one.name for one in asked],
    "hosts": {address: one.instance for address, one in heard.hosts.items()},
    "dropped": [one.instance for one in heard.dropped],
    "failed": dict(done.failed),
}))
"""
ADVERTISE = """
import sys
from rlxdeploy.runtime.address import Address
from rlxdeploy.runtime.link.mdns import NodeAdvert
advert = NodeAdvert("job-0", Address("10.77.0.1", 29500), print)
print(flush=True)
sys.stdin.read()
advert.close()
"""
# Names instances, again and again, and never says more of them.
GHOSTS = """
import sys, threading
from zeroconf import DNSOutgoing, DNSPointer, Zeroconf
zeroconf, ended = Zeroconf(["10.77.0.1"]), threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
service = "_ssh._tcp.local."
while not ended.wait(0.2):
    out = DNSOutgoing(0x8400)
    for number in range(40):
        pointer = DNSPointer(service, 12, 1, 120, f"ghost-{number}.{service}")
        out.add_answer_at_time(pointer, 0)
    zeroconf.send(out)
    print(flush=True)
zeroconf.close()
"""
SERVICE = """\
<?xml version="1.0" standalone='no'?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name replace-wildcards="yes">%h</name>
<service><type>{service}</type>{named}<port>{port}</port></service></service-group>
"""
FAR = "10.80.0.9"
# As long as the other searches here listen.
HEARD_S = 3.0


def browse(fleet: Fleet, seconds: float = 3.0, only: str = "") -> dict[str, Any]:
    words = (str(seconds), *([only] if only else []))
    ran = fleet.controller((sys.executable, "-c", BROWSE, *words), env=ROOT)
    assert ran.returncode == 0, ran.stderr
    said: dict[str, Any] = json.loads(ran.stdout)
    return said


def announce(host: Host, target: str = "", service: str = "_ssh._tcp", port: int = 22) -> None:
    """Have *host* say that it has *service*, at *target* where it is not the host's own name."""
    named = f"<host-name>{target}</host-name>" if target else ""
    text = SERVICE.format(service=service, named=named, port=port)
    host.write("/etc/avahi/services/ours.service", text)
    host.exec(("systemctl", "start", "avahi-daemon.service"))
    journal = ("journalctl", "--unit", "avahi-daemon", "--output", "cat")
    wait_until(lambda: "" if "established" in host.exec(journal).stdout else "the service", 15)


@pytest.fixture(scope="module")
def loud(fleet: Fleet) -> Iterator[list[Host]]:
    """Give a host that announces SSH, upstream's coordinator, one with a far address, and a mute.

    The first three are announced by avahi; the third names an address of a second link that the
    controller has, where nobody else is.
    """
    switch = f"{fleet.token}-switch-lan"
    with fleet.lend(4) as hosts:
        ssh, coordinator, far, _ = hosts
        announce(ssh)
        announce(coordinator, service="_rlx-coord._udp", port=29600)
        far.write("/etc/avahi/hosts", f"{FAR} {far.name}-far.local\n")
        announce(far, f"{far.name}-far.local")
        ip(switch, "link add lan2 type veth peer name lan2-end", "link set lan2-end up")
        ip(switch, "address add 10.80.0.1/24 dev lan2", "link set lan2 up")
        yield hosts
        ip(switch, "link delete lan2")


def ip(namespace: str, *commands: str) -> None:
    run(("ip", "-n", namespace, "-batch", "-"), stdin="\n".join(commands) + "\n")


def test_hosts_that_avahi_announces_are_found(fleet: Fleet, loud: list[Host]) -> None:
    """Each by its address on the bridge and its name, for SSH and for upstream's coordinator.

    An interface that has just gone away is named, and keeps nobody from being heard on others.
    """
    ssh, coordinator, _, silent = loud

    said = browse(fleet)

    assert said["asked"] == ["br0", "lan2"]
    assert of(ssh, said["hosts"]) == ssh.name
    assert of(coordinator, said["hosts"]) == coordinator.name
    assert of(silent, said["hosts"]) is None
    assert said["failed"] == {"gone0": "No such device"}


def of(host: Host, said: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever is said of it
    """Return what is *said* of *host*; whichever of its addresses is heard first, it goes by."""
    return said.get(host.address, said.get(host.ipv6))


def test_ctrl_c_says_who_was_heard_so_far(fleet: Fleet, loud: list[Host], tmp_path: Path) -> None:
    """The command ends with 130 long before its time, and names whom it has heard by then."""
    inventory = tmp_path / "inventory.toml"
    inventory.write_text("[discover]\nmdns = true\nbrowse_s = 600\n")
    process = fleet.spawn(("rlxdeploy", "plan", str(inventory)))
    assert process.stderr is not None
    assert "listening on br0" in process.stderr.readline()
    time.sleep(HEARD_S)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)

    assert process.returncode == 130
    found = re.search(r"interrupted \(mDNS not heard out\); found so far: (.*)", said)
    assert found is not None, said
    assert loud[0].address in found[1] or loud[0].ipv6 in found[1]


def test_an_answer_counts_on_the_link_it_came_in_on(fleet: Fleet, loud: list[Host]) -> None:
    """An address that stands for a place on another link of ours is not believed."""
    far = loud[2]

    said = browse(fleet)

    assert FAR not in said["hosts"]
    assert far.name in said["dropped"]


def test_all_are_asked_at_once_and_who_keeps_silent_is_named(
    fleet: Fleet, loud: list[Host]
) -> None:
    """Forty names without an address keep nobody from being found, and none is forgotten."""
    ghosts = fleet.spawn((sys.executable, "-c", GHOSTS), env=ROOT)
    try:
        assert ghosts.stdout is not None
        assert ghosts.stdout.readline() == "\n", ghosts.communicate()
        said = browse(fleet)
    finally:
        ghosts.communicate("", timeout=20)

    assert of(loud[0], said["hosts"]) == loud[0].name
    assert {f"ghost-{number}" for number in range(40)} <= set(said["dropped"])


def test_the_interface_of_the_inventory_is_asked_alone(fleet: Fleet, loud: list[Host]) -> None:
    """Where it leads to everybody they are found; where nobody is, that is said in full."""
    ssh, coordinator, far, silent = loud

    found = probe(fleet, "br0")
    nobody = probe(fleet, "lan2")

    hosts = json.loads(found.stdout)["hosts"]
    assert of(ssh, hosts)
    assert of(coordinator, hosts)
    assert of(far, hosts) is None
    assert of(silent, hosts) is None
    said = "nobody answered by mDNS on lan2 (10.80.0.1/24) in 2 s; list the machines in ssh_hosts"
    assert json.loads(nobody.stdout)["hosts"] == {}
    assert said in nobody.stderr


def probe(fleet: Fleet, interface: str) -> subprocess.CompletedProcess[str]:
    """Have the command look for hosts by mDNS on one interface."""
    desk = Desk(fleet, "heard")
    tables = f'[network]\ninterface = "{interface}"\n[discover]\nmdns = true\nbrowse_s = 2\n'
    desk.write((), tables=tables)
    return desk.run("probe", "--json")


@pytest.mark.parametrize("place", ["beside", "alone"])
def test_an_address_of_docker0_is_not_believed(fleet: Fleet, hosts: Lend, place: str) -> None:
    """A host that announces its docker0 too is found on the bridge; with it alone it is dropped."""
    (host,) = hosts(1)
    host.exec(("ip", "link", "add", "docker0", "type", "bridge"))
    host.exec(("ip", "address", "add", "172.17.0.1/16", "dev", "docker0"))
    host.exec(("ip", "link", "set", "docker0", "up"))
    target = "" if place == "beside" else f"{host.name}-docker.local"
    host.write("/etc/avahi/hosts", f"172.17.0.1 {host.name}-docker.local\n")
    announce(host, target)

    said = browse(fleet)

    assert "172.17.0.1" not in said["hosts"]
    assert (said["hosts"].get(host.address) == host.name) == (place == "beside")
    assert (host.name in said["dropped"]) == (place == "alone")


def test_avahi_sees_a_node_that_advertises(fleet: Fleet, hosts: Lend) -> None:
    """Another implementation resolves name, address and port of `_rlx-node._tcp`."""
    (host,) = hosts(1)
    host.exec(("systemctl", "start", "avahi-daemon.service"))
    process = fleet.spawn((sys.executable, "-c", ADVERTISE), env=ROOT)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        wanted = '"job-0" "_rlx-node._tcp" "local" "job-0.local" 0 "10.77.0.1" 29500'
        wait_until(lambda: "" if wanted in resolved(host, "job-0") else wanted, 15)
    finally:
        process.communicate("")


def resolved(host: Host, name: str) -> str:
    """Return what the avahi of *host* says of the node called *name*."""
    service = (name, "_rlx-node._tcp", "local", "0", "0")
    call = ("busctl", "call", "org.freedesktop.Avahi", "/", "org.freedesktop.Avahi.Server")
    ask = (*call, "ResolveService", "iisssiu", "--", "-1", "-1", *service)
    return host.exec(ask, check=False).stdout


def test_a_deployed_group_shows_itself(fleet: Fleet, hosts: Lend) -> None:
    """With `advertise` each rank is seen by job and number; one without zeroconf says why not."""
    first, second, without = hosts(2, HostSpec(zeroconf=False))
    desk = Desk(fleet, "shown")
    desk.write_hosts([first, second, without], tables="[discover]\nadvertise = true\n")
    desk.run("apply", "--yes")

    wanted = {first.address: "shown-0", second.address: "shown-1"}
    wait_until(lambda: "" if wanted.items() <= browse(fleet)["hosts"].items() else "both", 20)
    assert without.address not in browse(fleet)["hosts"]
    assert "the Python package zeroconf is not installed" in desk.run("logs").stdout

    desk.run("destroy", "--yes")
    assert not wanted.keys() & browse(fleet)["hosts"].keys()
