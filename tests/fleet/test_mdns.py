"""MDNS over the bridge: avahi announces and is asked, zeroconf asks and announces."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.desk import Desk
from tests.fleet.harness.fleet import Fleet, Lend
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until
from tests.fleet.harness.spec import HostSpec

ROOT = {"PYTHONPATH": str(Path(__file__).parents[2])}

# The controller's own processes: one browses and prints, one announces until it is ended.
BROWSE = """
import json, sys
from rlxdeploy.edge.here import own_network
from rlxdeploy.edge.mdns import browse
from rlxdeploy.facts.mdns import askable, sort_out
from rlxdeploy.model.host import Host
host = Host("local")
here = own_network(host)
asked = askable(here)
heard = sort_out(browse(host, asked, float(sys.argv[1])), asked)
print(json.dumps({
    "asked": [one.name for one in asked],
    "hosts": {address: one.instance for address, one in heard.hosts.items()},
    "dropped": [one.instance for one in heard.dropped],
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
SERVICE = """\
<?xml version="1.0" standalone='no'?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name replace-wildcards="yes">%h</name>
<service><type>_ssh._tcp</type><port>22</port></service></service-group>
"""


def browse(fleet: Fleet, seconds: float = 3.0) -> dict[str, Any]:
    ran = fleet.controller((sys.executable, "-c", BROWSE, str(seconds)), env=ROOT)
    assert ran.returncode == 0, ran.stderr
    said: dict[str, Any] = json.loads(ran.stdout)
    return said


def announce(host: Host, target: str = "") -> None:
    """Have *host* say that it takes SSH, at *target* where it is not the host's own name."""
    named = f"<host-name>{target}</host-name>" if target else ""
    host.write("/etc/avahi/services/ssh.service", SERVICE.replace("<port>", f"{named}<port>"))
    host.exec(("systemctl", "start", "avahi-daemon.service"))
    journal = ("journalctl", "--unit", "avahi-daemon", "--output", "cat")
    wait_until(lambda: "" if "established" in host.exec(journal).stdout else "the service", 15)


def test_hosts_that_avahi_announces_are_found(fleet: Fleet, hosts: Lend) -> None:
    """Each by its address on the bridge and its name; one that keeps silent is not."""
    first, second, silent = hosts(3)
    announce(first)
    announce(second)

    said = browse(fleet)

    assert said["asked"] == ["br0"]
    assert {first.address: first.name, second.address: second.name}.items() <= said["hosts"].items()
    assert silent.address not in said["hosts"]


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
