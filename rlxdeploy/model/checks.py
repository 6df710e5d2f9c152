"""What is wrong with an inventory as a whole, as far as its text alone can tell.

Each check is a generator of findings; the ones that need to ask a machine are made when the group
is resolved.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from rlxdeploy.errors import Finding, Severity
from rlxdeploy.model.check_nodes import NODE_CHECKS
from rlxdeploy.model.cidr import parse_cidr
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.locate import KeyPath
from rlxdeploy.model.vocabulary import Policy, Security, Wire
from rlxdeploy.model.world import active_nodes, dialled_addresses, is_on_loopback

Check = Callable[[Loaded], Iterator[Finding]]


def check(loaded: Loaded) -> tuple[Finding, ...]:
    """Return every finding of every check, in the order of the file."""
    found = [finding for one in (*_JOB_CHECKS, *NODE_CHECKS) for finding in one(loaded)]
    return tuple(sorted(found, key=lambda finding: finding.place or loaded.place_of(())))


def _as(severity: Severity, finding: Finding) -> Finding:
    return replace(finding, severity=severity)


def _job_name(loaded: Loaded) -> Iterator[Finding]:
    if loaded.inventory.job.name is not None:
        return
    path = loaded.path
    stem = path.parent.name if path.stem == "inventory" else path.stem
    try:
        name = loaded.job
    except ValueError as error:
        yield loaded.finding(("job", "name"), str(error))
        return
    if name != stem:
        told = loaded.finding(("job", "name"), f"unwritten; {stem!r} becomes {name!r}")
        yield _as(Severity.NOTICE, told)


def _job_command(loaded: Loaded) -> Iterator[Finding]:
    command = loaded.inventory.job.command
    if command is not None and not command[0].strip():
        yield loaded.finding(("job", "command", 0), "the program's name is empty")


def _job_user(loaded: Loaded) -> Iterator[Finding]:
    if loaded.inventory.job.user == "root":
        finding = loaded.finding(("job", "user"), "the ranks run as root")
        yield _as(Severity.WARNING, finding)


def _job_revert(loaded: Loaded) -> Iterator[Finding]:
    job = loaded.inventory.job
    if job.revert_after is not None and job.revert_after <= job.join_timeout:
        yield loaded.finding(
            ("job", "revert_after"),
            f"hosts would go back before join_timeout ({job.join_timeout:g} s) has passed",
            f"write more than {job.join_timeout:g}",
        )


def _job_counts(loaded: Loaded) -> Iterator[Finding]:
    job, active = loaded.inventory.job, len(active_nodes(loaded.inventory))
    if job.expect is not None and loaded.inventory.discover.is_empty and job.expect != active:
        yield loaded.finding(("job", "expect"), f"{job.expect} expected, {active} active written")
    if job.expect is not None and job.min_nodes is not None and job.min_nodes > job.expect:
        yield loaded.finding(("job", "min_nodes"), f"it is more than expect ({job.expect})")


def _job_files(loaded: Loaded) -> Iterator[Finding]:
    """Refuse two files at one place, and a file where another needs a folder."""
    dests = [PurePosixPath(file.dest) for file in loaded.inventory.job.files]
    folders = {folder: dest for dest in dests for folder in dest.parents}
    seen: set[PurePosixPath] = set()
    for index, dest in enumerate(dests):
        path = ("job", "files", index, "dest")
        if dest in folders:
            yield loaded.finding(path, f"{folders[dest]} needs a folder there")
        if dest in seen:
            yield loaded.finding(path, f"another file already goes to {dest}")
        seen.add(dest)


def _job_security(loaded: Loaded) -> Iterator[Finding]:
    job = loaded.inventory.job
    if job.wire is not Wire.RLX:
        return
    if job.security in (Security.PSK, Security.TLS):
        yield loaded.finding(
            ("job", "security"),
            f"the rlx wire has no {job.security}",
            'write security = "none", or wire = "native"',
        )
    if job.security is None:
        for path, address in dialled_addresses(loaded.inventory):
            if not is_on_loopback(address):
                yield loaded.finding(
                    path,
                    f"the rlx wire is unprotected, and {address} is not loopback",
                    'write security = "none" in [job] if that is meant',
                )


def _job_wire(loaded: Loaded) -> Iterator[Finding]:
    """Say what the default means for nodes of the person's own, which may be public RLX ranks."""
    job = loaded.inventory.job
    own = [node for _, node in active_nodes(loaded.inventory) if not node.managed]
    if job.wire is None and own:
        needs = " and the job's key" if job.effective_security is Security.PSK else ""
        what = f"unwritten; it is native, so nodes that are not managed need our runtime{needs}"
        remedy = 'public RLX ranks need wire = "rlx", and security = "none" off loopback'
        yield _as(Severity.NOTICE, loaded.finding(("job", "wire"), what, remedy))


def _masked_subnets(loaded: Loaded) -> Iterator[Finding]:
    discover, network = loaded.inventory.discover, loaded.inventory.network
    written: list[tuple[KeyPath, str | None]] = [
        (("discover", "subnet"), discover.subnet),
        (("network", "cidr"), network.cidr),
        *((("discover", "exclude", index), text) for index, text in enumerate(discover.exclude)),
    ]
    for path, text in written:
        if text is not None and "/" in text and (parsed := parse_cidr(text)).masked:
            finding = loaded.finding(path, f"{text} is taken as {parsed.network}")
            yield _as(Severity.NOTICE, finding)


def _master_port(loaded: Loaded) -> Iterator[Finding]:
    network = loaded.inventory.network
    if network.master_port == network.data_port:
        path = (
            "network",
            "master_port" if loaded.written(("network", "master_port")) else "data_port",
        )
        yield loaded.finding(path, f"master_port and data_port are both {network.data_port}")


def _placement_layers(loaded: Loaded) -> Iterator[Finding]:
    placement = loaded.inventory.placement
    if placement.policy is Policy.MANUAL:
        return
    if loaded.written(("placement",)) and placement.n_layers is None:
        finding = loaded.finding(("placement",), "without n_layers, no LAYERS is rendered")
        yield _as(Severity.NOTICE, finding)


_JOB_CHECKS: tuple[Check, ...] = (
    _job_name,
    _job_command,
    _job_user,
    _job_revert,
    _job_counts,
    _job_files,
    _job_security,
    _job_wire,
    _masked_subnets,
    _master_port,
    _placement_layers,
)
