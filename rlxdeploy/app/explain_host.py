"""Where the values of one host come from."""

from collections.abc import Iterator

from rlxdeploy.app.compile import Compiled
from rlxdeploy.app.explained import Explained, Value, noticed
from rlxdeploy.model.resolution import Placed
from rlxdeploy.model.survey import Device, HostFacts
from rlxdeploy.resolve.candidates import candidates
from rlxdeploy.resolve.entries import Entry, entries

_SEEN = "reported by the survey"


def explain_host(host: str, compiled: Compiled) -> Explained:
    """Explain a host that is in the survey, whether it answered or not."""
    found = entries_on(host, compiled)
    facts, placed = compiled.survey.hosts.get(host), compiled.resolution.hosts.get(host)
    values = [*_nodes(found, compiled), *_ranks(host, compiled)]
    if placed is not None:
        values += placed_values(placed)
        values += _files(placed)
    if facts is None:
        values.append(Value("survey", "no answer", compiled.survey.failed[host]))
    else:
        values += _machine(facts)
        values += _addresses(host, compiled)
    notices = noticed(compiled, {entry.index for entry in found})
    return Explained(f"host {host}", tuple(values), notices=notices)


def entries_on(host: str, compiled: Compiled) -> tuple[Entry, ...]:
    """Return the managed nodes whose machine is *host*, under whatever name."""
    merged = compiled.resolution.merged
    managed = (one for one in entries(compiled.loaded) if one.node.managed)
    return tuple(one for one in managed if merged.get(one.host.name, one.host.name) == host)


def placed_values(placed: Placed) -> Iterator[Value]:
    """Yield how ranks are started on a host."""
    for name, value in (
        ("launch", placed.launch),
        ("user", placed.user),
        ("workdir", placed.workdir),
    ):
        yield Value(name, value, placed.why[name])


def _files(placed: Placed) -> Iterator[Value]:
    if placed.python:
        yield Value("python", placed.python, placed.why["python"])
    yield Value("owner", placed.owner, placed.why["owner"])
    yield Value("home", placed.tree.home, placed.why["home"])


def _nodes(found: tuple[Entry, ...], compiled: Compiled) -> Iterator[Value]:
    for entry in found:
        place = compiled.loaded.place_of(entry.key())
        also = compiled.resolution.merged.get(entry.host.name)
        same = f"; {entry.host.name} is {also} under another name" if also else ""
        yield Value("node", f"{entry.name} ({entry.node.role})", f"{place}{same}")


def _ranks(host: str, compiled: Compiled) -> Iterator[Value]:
    seats = compiled.resolution.on(host)
    yield from (Value("rank", str(seat.rank), f"{seat.node}: {seat.why['rank']}") for seat in seats)
    if not seats:
        yield Value("rank", "none", "no active node of the group is on this host")


def _machine(facts: HostFacts) -> Iterator[Value]:
    platform, hardware = facts.platform, facts.hardware
    manager = f", systemd {platform.systemd}" if platform.systemd else ""
    yield Value("system", f"{platform.os} {platform.arch}{manager}", _SEEN)
    yield Value("cores", str(hardware.cores), _SEEN)
    yield Value("RAM", f"{hardware.ram_total / 1e9:.1f} GB", _SEEN)
    yield from (Value("device", _named(one), _state(one)) for one in hardware.devices)


def _named(device: Device) -> str:
    memory = f", {device.mem_bytes / 1e9:.1f} GB" if device.mem_bytes else ""
    return f"{device.device} {device.name}{memory}"


def _state(device: Device) -> str:
    if device.error or not device.available:
        return f"{_SEEN}, not usable: {device.error or 'not available'}"
    return f"{_SEEN}, may fail: {device.trouble}" if device.trouble else _SEEN


def _addresses(host: str, compiled: Compiled) -> Iterator[Value]:
    """Yield all addresses of the machine: who is dialled there, or why nobody is unasked."""
    seats = [seat for seat in compiled.resolution.seats if seat.managed]
    names = dict.fromkeys([*(seat.host for seat in seats), host])
    networks = {name: compiled.survey.hosts[name].network for name in names}
    dialled: dict[str, list[str]] = {}
    for seat in seats:
        if seat.host == host and seat.peer:
            dialled.setdefault(seat.peer.address, []).append(str(seat.rank))
    for one in candidates(networks)[host]:
        ranks = dialled.get(str(one.address))
        fit = f"passed over: {one.against}" if one.against else "others could dial it"
        why = f"peers dial rank {', '.join(ranks)} there" if ranks else fit
        yield Value("address", str(one), why)
