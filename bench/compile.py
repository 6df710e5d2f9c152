"""How long a plan takes, and how much memory, as a group grows: `python -m bench compile`.

Each plan is made by the command itself, from a survey that is recorded beforehand, with no host up.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

from rlxdeploy.model.codec import dump_survey
from rlxdeploy.model.host import Host
from rlxdeploy.model.survey import (
    Device,
    Hardware,
    HostFacts,
    Interface,
    JobSeen,
    Network,
    Platform,
    Survey,
)

SIZES = (250, 500, 1000, 2000)
ROUNDS = 3
COMMAND = "from rlxdeploy.cli.main import main; main()"


@dataclass(frozen=True)
class Sample:
    """One plan: wall seconds, peak resident memory, size of all rendered files, and its words."""

    seconds: float
    megabytes: float
    rendered: int
    said: str


def run() -> str:
    """Measure all sizes in a mesh and in a star, and return the table."""
    rows = [
        "| hosts | topology | seconds | peak MB | files rendered, MB |",
        "|---:|---|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for hosts in SIZES:
            (folder / "survey.json").write_text(recorded(hosts), encoding="utf-8")
            for topology in ("mesh", "star"):
                (folder / "inventory.toml").write_text(inventory(hosts, topology), "utf-8")
                samples = [measure(folder) for _ in range(ROUNDS)]
                best = min(samples, key=lambda one: one.seconds)
                rows.append(
                    f"| {hosts:,} | {topology} | {best.seconds:.2f} | {best.megabytes:.0f}"
                    f" | {best.rendered / 1e6:.1f} |"
                )
    return "\n".join(rows)


def measure(folder: Path) -> Sample:
    """Plan the inventory of *folder* from its survey, in a process of its own."""
    argv = [sys.executable, "-c", COMMAND, "plan", str(folder / "inventory.toml")]
    argv += ["--survey", str(folder / "survey.json"), "--no-diff"]
    started = time.perf_counter()
    with Popen(argv, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, text=True) as process:
        said = process.stdout.read() if process.stdout else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    took = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"{argv}: exit {process.returncode}: {said[-500:]}")
    return Sample(took, used.ru_maxrss / 1024, _rendered(said), said)


def _rendered(said: str) -> int:
    """Add up the sizes that the plan names, `(1234 bytes from …)`, but for what hosts share."""
    lines = (line for line in said.splitlines() if "/store/" not in line)
    return sum(int(size) for line in lines for size in re.findall(r"\((\d+) bytes from ", line))


def inventory(hosts: int, topology: str) -> str:
    """Return an inventory of so many hosts, one rank each."""
    head = f'[job]\nname = "large"\nwire = "rlx"\nsecurity = "none"\ntopology = "{topology}"\n'
    return head + "".join(f'[[node]]\nssh = "h{number}"\n' for number in range(hosts))


def recorded(hosts: int) -> str:
    """Return the survey of so many alike hosts, as it is saved."""
    return dump_survey(Survey({f"h{number}": _facts(number) for number in range(hosts)}))


def _facts(number: int) -> HostFacts:
    name, address = f"h{number}", f"10.{number // 250}.{number % 250}.1/8"
    own = Interface("eth0", f"02:{number:x}", up=True, mtu=1500, addresses=(address,))
    platform = replace(
        _PLATFORM, hostname=name, machine_id=f"machine-{name}", boot_id=f"boot-{name}"
    )
    return HostFacts(Host(name, name), _HARDWARE, Network((own,), ("eth0",)), platform, JobSeen())


_CARDS = tuple(Device("cuda", "Card", 24 << 30, ident=str(index)) for index in range(4))
_HARDWARE = Hardware(
    cpu="CPU",
    cores=64,
    ram_total=256 << 30,
    ram_avail=200 << 30,
    disk_free={},
    devices=(Device("cpu", "CPU"), *_CARDS),
)
_PLATFORM = Platform(
    os="linux",
    arch="x86_64",
    hostname="",
    machine_id="",
    boot_id="",
    init="systemd",
    systemd="252",
    libc="glibc 2.36",
    python="/usr/bin/python3",
    python_version="3.11.2",
    numpy="1.24.2",
    user="ml",
    uid=1000,
    home="/home/ml",
    data_home="/home/ml/.local/share",
    runtime_dir="/run/user/1000",
    clock=0.0,
    programs={"python3": "/usr/bin/python3"},
    searched=("/usr/bin",),
    groups=("video",),
    launches=("systemd", "process"),
    sudo=True,
)
