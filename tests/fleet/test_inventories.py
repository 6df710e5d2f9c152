"""Each inventory that we show, applied once on real hosts that are called as it says."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fleet.desk import Desk
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until
from tests.fleet.harness.spec import HostSpec

SHOWN = Path(__file__).parents[2] / "inventories"
SERVICE = """\
<?xml version="1.0" standalone='no'?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name replace-wildcards="yes">%h</name>
<service><type>_ssh._tcp</type><port>22</port></service></service-group>
"""
PAIR = (HostSpec(name="gpu-a"), HostSpec(name="gpu-b", release="trixie"))


def announce(host: Host) -> None:
    host.write("/etc/avahi/services/ssh.service", SERVICE)
    host.exec(("systemctl", "start", "avahi-daemon.service"))
    journal = ("journalctl", "--unit", "avahi-daemon", "--output", "cat")
    wait_until(lambda: "" if "established" in host.exec(journal).stdout else "the service", 15)


def on_the_lan(text: str, hosts: Sequence[Host]) -> str:
    """Return an inventory for the fleet's own subnet, where other tests may have left a bastion."""
    text = text.replace("exclude = [", 'exclude = ["bastion", ')
    return text.replace("10.0.5.11", hosts[0].address).replace("10.0.5.", "10.77.0.")


def as_cluster(text: str, hosts: Sequence[Host]) -> str:
    """Return the public file for hosts without cards, the controller being its first node."""
    for last, host in zip(("10.0.0.11", "10.0.0.12", "10.0.0.13"), hosts, strict=False):
        text = text.replace(last, host.address)
    text = text.replace("10.0.0.10", "10.77.0.1").replace("10.0.5.0/28", "10.77.9.0/28")
    for device in ("metal+cpu", "nvidia, cpu", "cuda"):
        text = text.replace(f'device = "{device}"', 'device = "cpu"')
    return text


@contextmanager
def shown(
    fleet: Fleet,
    name: str,
    specs: Sequence[HostSpec],
    adapted: Callable[[str, Sequence[Host]], str],
) -> Iterator[Desk]:
    """Give a desk with the inventory *name* and the hosts it speaks of."""
    with fleet.lend(*specs) as hosts:
        if "mdns = true" in (text := (SHOWN / f"{name}.toml").read_text()):
            for host in hosts:
                announce(host)
        desk = Desk(fleet, name)
        (desk.folder / "inventory.toml").write_text(adapted(text, hosts))
        yield desk


@pytest.mark.parametrize(
    ("name", "specs", "adapted", "world"),
    [
        ("ssh-hosts", PAIR, on_the_lan, 2),
        ("subnet", PAIR, on_the_lan, 2),
        ("mdns", PAIR, on_the_lan, 2),
        ("mixed", (*PAIR, HostSpec(name="gpu-c", release="bullseye")), on_the_lan, 4),
        (
            "nat",
            (PAIR[0], *(HostSpec(name=f"home-{number}", place="nat") for number in (1, 2))),
            on_the_lan,
            3,
        ),
        (
            "cluster",
            (*PAIR, *(HostSpec(name=name) for name in ("old", "gpu-c", "gpu-d"))),
            as_cluster,
            4,
        ),
    ],
    ids=["ssh-hosts", "subnet", "mdns", "mixed", "nat", "cluster"],
)
def test_what_we_show_is_applied_as_it_is(
    fleet: Fleet,
    name: str,
    specs: Sequence[HostSpec],
    adapted: Callable[[str, Sequence[Host]], str],
    world: int,
) -> None:
    """The group forms with one digest, a second apply is no change, and destroy takes it away."""
    with shown(fleet, name, specs, adapted) as desk:
        desk.run("apply", "--yes")
        assert desk.is_whole(world) == ""
        assert desk.json("apply", "--yes")["changed"] is False
        desk.run("destroy", "--yes")
