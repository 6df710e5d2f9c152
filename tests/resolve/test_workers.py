"""What workers say of themselves, in place of a survey and made of one."""

from dataclasses import replace

import pytest

from rlxdeploy.facts.caps import DeviceInfo, NodeCaps
from rlxdeploy.model.found import Found
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.survey import Device, HostFacts, Survey
from rlxdeploy.render.concrete import resolve_toml
from rlxdeploy.resolve.resolve import resolve
from rlxdeploy.resolve.workers import as_workers, with_workers
from tests.resolve.lab import CONTROLLER, CPU, GIB, load, machine, survey

HEAD = '[job]\nwire = "rlx"\nsecurity = "none"\n'
ONE = '[[node]]\nssh = "a"\naddr = "10.0.0.1:9100"\n'
PAIR = f'{ONE}[[node]]\nssh = "b"\naddr = "10.0.0.2:9100"\n'
LAYERS = "[placement]\nn_layers = 12\n"


def worker(addr: str, gigabytes: float, device: str = "cpu") -> NodeCaps:
    """Return what a worker says on a machine with so much memory (decimal GB)."""
    memory = int(gigabytes * 10**9)
    card = DeviceInfo(device=device, name="Card", mem_bytes=memory, unified=False)
    return NodeCaps(
        addr=addr,
        os="linux",
        cores=8,
        ram_total=memory,
        ram_avail=memory,
        disk_free=0,
        devices=(DeviceInfo(device="cpu", name="CPU", mem_bytes=0, unified=True), card),
        gflops=0.0,
        io_mbps=0.0,
    )


def settle(text: str, **workers: NodeCaps) -> tuple[Loaded, Resolution]:
    """Resolve *text* with what workers say, under the keys they are told by."""
    said = {name.replace("_", "-"): one for name, one in workers.items()}
    whole = with_workers(load(HEAD + text), {one.addr: one for one in said.values()})
    return whole, resolve(whole, Survey({}), CONTROLLER)


def test_a_worker_s_word_settles_device_address_and_layers() -> None:
    """20 and 13 GB less 6 are 14 and 7: eight and four of twelve layers, and no host was asked."""
    whole, group = settle(
        LAYERS + PAIR,
        a=worker("10.0.0.1:9100", 20, "cuda"),
        b=worker("10.0.0.2:9100", 13, "cuda"),
    )

    assert [seat.share.layers for seat in group.seats] == ["0:8", "8:12"]
    assert [seat.devices for seat in group.seats] == [("cuda",)] * 2
    assert group.peers == ("10.0.0.1:9100", "10.0.0.2:9100")
    assert [seat.managed for seat in group.seats] == [False, False]
    assert group.seats[0].why["host"] == "known by its NodeCaps alone, and taken to run elsewhere"
    told = "\n".join(map(str, whole.notices))
    assert "a is known by its NodeCaps alone, and planned as one that runs elsewhere" in told


def test_the_concrete_inventory_of_it_resolves_to_the_same() -> None:
    """What runs elsewhere says so, with its device, address and layers."""
    said = {"a": worker("10.0.0.1:9100", 20), "b": worker("10.0.0.2:9100", 13)}
    whole, group = settle(LAYERS + PAIR, **said)

    written = load(resolve_toml(group, whole))

    again = resolve(written, Survey({}), CONTROLLER)
    assert again.peers == group.peers
    assert [seat.share.layers for seat in again.seats] == ["0:8", "8:12"]
    assert [node.managed for node in written.inventory.node] == [False, False]


def test_found_nodes_are_those_that_workers_speak_for() -> None:
    """An alias of `ssh_hosts` by its stage port, and an address that the subnet led to."""
    search = '[discover]\nssh_hosts = ["10.0.0.9", "down"]\nsubnet = "10.0.0.0/24"\n'

    whole, group = settle(
        search + PAIR.partition('[[node]]\nssh = "b"')[0],
        a=worker("10.0.0.1:9100", 20),
        nine=worker("10.0.0.9:9100", 20),
        seven=worker("10.0.0.7:9100", 20),
    )

    assert group.peers == ("10.0.0.1:9100", "10.0.0.9:9100", "10.0.0.7:9100")
    assert [one.by for one in whole.found.values()] == ["ssh_hosts", "subnet"]


def test_a_worker_of_no_node_is_named() -> None:
    """Its address is nobody's, and nothing is searched for."""
    whole, group = settle(
        PAIR,
        a=worker("10.0.0.1:9100", 20),
        b=worker("10.0.0.2:9100", 20),
        c=worker("10.0.0.3:9100", 20),
    )

    assert group.world == 2
    assert "NodeCaps of 10.0.0.3:9100 belong to no node" in "\n".join(map(str, whole.notices))


def test_a_node_without_a_worker_is_not_surveyed() -> None:
    """Managed nodes that nobody speaks for are missing, as they are from a survey."""
    with pytest.raises(ExceptionGroup) as caught:
        settle(PAIR, a=worker("10.0.0.1:9100", 20))

    assert "b: survey: not surveyed" in str(caught.value.exceptions)


@pytest.mark.parametrize(
    ("node", "addr"),
    [
        ('ssh = "a"\naddr = "10.0.0.1:9100"', "10.0.0.1:9100"),
        ('ssh = "a"\naddr = "10.0.0.1"', "10.0.0.1:29500"),
        ('ssh = "a"', "a:29500"),
        ('ssh = "ssh://ml@gw:2201"', "gw:29500"),
    ],
)
def test_what_we_say_in_upstream_s_form_names_an_address(node: str, addr: str) -> None:
    """Upstream's `addr` is what peers dial, never the name of a host."""
    loaded = load(f"{HEAD}[[node]]\n{node}\n")
    name = loaded.inventory.node[0].ssh or ""

    assert as_workers(loaded, survey(machine(name, "10.0.0.1/24")))[name].addr == addr


def test_the_controller_s_own_worker_is_on_loopback() -> None:
    """A node without ssh and addr is nowhere else to be dialled."""
    loaded = load(f"{HEAD}[[node]]\n")

    assert as_workers(loaded, survey(machine()))["local"].addr == "127.0.0.1:29500"


def test_a_found_host_that_is_no_node_after_all_has_no_worker() -> None:
    """A machine with two names is told of once, so that what is printed reads back."""
    loaded = load(f'{HEAD}[discover]\nsubnet = "10.0.0.0/24"\n[[node]]\nssh = "a"\n')
    twin = machine("10.0.0.1", "10.0.0.1/24")
    seen = replace(survey(machine("a", "10.0.0.1/24"), twin), found=(Found("10.0.0.1", "subnet"),))

    assert list(as_workers(loaded, seen)) == ["a"]


def test_what_we_print_reads_back_to_the_same_devices_and_layers() -> None:
    """A survey and its NodeCaps agree on all that NodeCaps can say."""
    cards = [CPU, Device("cuda", "Card", 24 * GIB, ident="0")]
    machines = [
        _with_memory(machine(name, f"10.0.0.{number}/24", *cards[1:]), 20 + 10 * number)
        for number, name in enumerate("ab", start=1)
    ]
    loaded, seen = load(HEAD + LAYERS + PAIR), survey(*machines)

    asked = resolve(loaded, seen, CONTROLLER)
    told = resolve(with_workers(loaded, as_workers(loaded, seen)), Survey({}), CONTROLLER)

    assert told.peers == asked.peers
    for one, other in zip(told.seats, asked.seats, strict=True):
        assert (one.devices, one.share) == (other.devices, other.share)


def _with_memory(facts: HostFacts, gigabytes: int) -> HostFacts:
    memory = gigabytes * 10**9
    return replace(facts, hardware=replace(facts.hardware, ram_avail=memory, ram_total=memory))
