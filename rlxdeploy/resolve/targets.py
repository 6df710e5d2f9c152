"""From the inventory to the machines to survey, with what this job has to know of each."""

from collections.abc import Sequence
from dataclasses import replace

from rlxdeploy.errors import CompileError
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.targets import Enquiry, Target, Targets
from rlxdeploy.model.vocabulary import Become
from rlxdeploy.resolve.entries import CONTROLLER, Entry, entries, wanted_python

PYTHONS = frozenset({"python", "python3"})
LAST_PORT = 65535

# Whose free space counts where no folder is written: a login user's files go there.
HOME = "~"


def targets(loaded: Loaded, interpreter: str = "python3", *, bench: bool = False) -> Targets:
    """Return one target a machine: the controller for nodes without `ssh`, an alias otherwise.

    *interpreter* is the one that runs rlxdeploy; with *bench* the machines are measured.  Unmanaged
    nodes are not asked.  Raises CompileError for an alias that reads like the controller.
    """
    by_host: dict[str, list[Entry]] = {}
    for entry in entries(loaded):
        if entry.node.ssh == CONTROLLER:
            what = f"{CONTROLLER!r} is what the controller is called"
            finding = loaded.finding(entry.key("ssh"), what, "use another alias")
            raise CompileError([finding])
        if entry.node.managed:
            by_host.setdefault(entry.host.name, []).append(entry)
    asked = asked_pythons(loaded, interpreter)
    found = [_target(loaded, few, interpreter, asked[host]) for host, few in by_host.items()]
    if bench:
        found = [replace(one, enquiry=replace(one.enquiry, bench=True)) for one in found]
    return Targets(tuple(found))


def asked_pythons(loaded: Loaded, interpreter: str) -> dict[str, str]:
    """Return the interpreter that the survey of each host asks for its version and numpy."""
    asked: dict[str, str] = {}
    for entry in entries(loaded):
        if entry.node.managed:
            asked.setdefault(entry.host.name, wanted_python(loaded, entry, interpreter).program)
    return asked


def _target(loaded: Loaded, found: list[Entry], interpreter: str, asked: str) -> Target:
    job, network = loaded.inventory.job, loaded.inventory.network
    pythons = [wanted_python(loaded, entry, interpreter).program for entry in found]
    command = [] if job.command is None else [job.command[0]]
    programs = [*pythons, *(word for word in command if word not in PYTHONS)]
    folders = [entry.node.ckpt_dir for entry in found] + [job.workdir]
    written = tuple(dict.fromkeys(folder for folder in folders if folder))
    first = found[0]
    return Target(
        host=first.host,
        enquiry=Enquiry(
            job=loaded.job,
            programs=tuple(dict.fromkeys(programs)),
            ports=(*data_ports(found, network.data_port), network.master_port),
            folders=written or (HOME,),
            user=job.user,
            python=asked,
            sudo=loaded.inventory.ssh.become is not Become.NONE,
            launch=job.launch,
        ),
        nodes=tuple(entry.index for entry in found),
        place=loaded.place_of(first.key("ssh")),
    )


def data_ports(found: Sequence[Entry], data_port: int) -> tuple[int, ...]:
    """Return the ports that the ranks on one machine can come to listen on."""
    slots: dict[int, int] = {}
    for entry in found:
        base = entry.port or data_port
        slots[base] = slots.get(base, 0) + entry.node.slots
    ports = (base + count for base, total in slots.items() for count in range(total))
    return tuple(port for port in ports if port <= LAST_PORT)
