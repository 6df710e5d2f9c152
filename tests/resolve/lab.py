"""Inventories and surveyed machines for the tests of resolving and rendering, all plain values."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from rlxdeploy.model.host import Host
from rlxdeploy.model.inventory import Inventory
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.locate import locate
from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.survey import (
    Deployed,
    Device,
    Hardware,
    HostFacts,
    Interface,
    JobSeen,
    Network,
    Platform,
    Survey,
)
from rlxdeploy.resolve.controller import Controller
from rlxdeploy.resolve.resolve import resolve

GIB = 1 << 30
CPU = Device("cpu", "Some CPU")
CONTROLLER = Controller("/opt/rlxdeploy/bin/python", {})

# Three hosts without anything else written.
HOSTS = '[job]\nsecurity = "none"\nwire = "rlx"\n' + "".join(
    f'[[node]]\nssh = "{name}"\n' for name in "abc"
)


def load(text: str) -> Loaded:
    """Return *text* as an inventory read from `/lab/inventory.toml`."""
    inventory = Inventory.model_validate(tomllib.loads(text))
    return Loaded(PurePosixPath("/lab/inventory.toml"), "inventory.toml", inventory, locate(text))


def interface(name: str, *addresses: str, kind: str = "", mac: str = "") -> Interface:
    """Return an interface that is up."""
    return Interface(name, mac, up=True, mtu=1500, addresses=addresses, kind=kind)


def network(*interfaces: Interface, default: str = "eth0") -> Network:
    """Return loopback and *interfaces*, the default route leaving by *default*."""
    lo = interface("lo", "127.0.0.1/8", "::1/128", kind="loopback", mac="00:00:00:00:00:00")
    return Network((lo, *interfaces), (default,))


def platform(name: str = "local") -> Platform:
    """Return an ordinary Debian where every launch works."""
    return Platform(
        os="linux",
        arch="x86_64",
        hostname=name,
        machine_id=f"machine-{name}",
        boot_id=f"boot-{name}",
        init="systemd",
        systemd="252",
        libc="glibc 2.36",
        python=CONTROLLER.interpreter if name == "local" else "/usr/bin/python3",
        python_version="3.11.2",
        numpy="1.24.2",
        user="ml",
        uid=1000,
        home="/home/ml",
        data_home="/home/ml/.local/share",
        runtime_dir="/run/user/1000",
        clock=0.0,
        programs={"python3": "/usr/bin/python3", CONTROLLER.interpreter: CONTROLLER.interpreter},
        searched=("/usr/local/bin", "/usr/bin"),
        launches=("systemd", "systemd-user", "process"),
    )


def hardware(*devices: Device) -> Hardware:
    """Return a machine with 64 GiB of RAM, a cpu and *devices*."""
    return Hardware(
        cpu="Some CPU",
        cores=8,
        ram_total=64 * GIB,
        ram_avail=60 * GIB,
        disk_free={},
        devices=(CPU, *devices),
    )


def machine(
    name: str = "local",
    address: str = "",
    *devices: Device,
    ranks: Iterable[int] = (),
    **changes: Any,  # noqa: ANN401 - any field of a Platform
) -> HostFacts:
    """Return one surveyed machine, with *changes* to its platform and *ranks* deployed on it."""
    own = [interface("eth0", address, mac=f"02:{name}")] if address else []
    return HostFacts(
        host=Host(name, None if name == "local" else name),
        hardware=hardware(*devices),
        network=network(*own),
        platform=replace(platform(name), **changes),
        job=JobSeen(deployed(*ranks) if [*ranks] else None),
    )


def deployed(*ranks: int) -> Deployed:
    """Return the mark of an apply that put *ranks* on a host."""
    return Deployed(
        deployment="d",
        job="lab",
        release="r",
        generation=1,
        plan="p",
        launch="process",
        world=4,
        ranks=ranks,
        controller="c",
        owner="o",
        inventory="i",
        applied_at=0.0,
    )


def survey(*machines: HostFacts, failed: Mapping[str, str] | None = None) -> Survey:
    """Return the survey of *machines*."""
    return Survey({facts.host.name: facts for facts in machines}, failed or {})


def settle(text: str, *machines: HostFacts, controller: Controller = CONTROLLER) -> Resolution:
    """Resolve an inventory with a survey of *machines*, by default of the controller alone."""
    return resolve(load(text), survey(*(machines or (machine(),))), controller)


def three(**changes: Any) -> tuple[HostFacts, ...]:  # noqa: ANN401 - as above
    """Return the machines a, b and c on one subnet, with *changes* to each platform."""
    return tuple(
        machine(name, f"10.0.0.{number}/24", **changes)
        for number, name in enumerate("abc", start=1)
    )
