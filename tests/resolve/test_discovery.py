"""From found hosts to nodes: what is taken, in which order, and what is said of the rest."""

from dataclasses import replace

import pytest

from rlxdeploy.errors import CompileError, Severity
from rlxdeploy.model.codec import dump_survey, load_survey
from rlxdeploy.model.found import Found
from rlxdeploy.model.loaded import Loaded
from rlxdeploy.model.resolution import Resolution
from rlxdeploy.model.survey import HostFacts, Survey
from rlxdeploy.render.concrete import resolve_toml
from rlxdeploy.resolve.discovery import asked_again, gently, settled, with_nodes
from rlxdeploy.resolve.resolve import resolve
from rlxdeploy.resolve.sift import excluded
from rlxdeploy.resolve.targets import targets
from tests.resolve.lab import CONTROLLER, interface, load, machine, network, survey

HEAD = '[job]\nwire = "rlx"\nsecurity = "none"\n'
SEARCH = '[discover]\nssh_hosts = ["gpu-a", "gpu-b"]\nsubnet = "10.0.5.0/24"\nmdns = true\n'


def alias(name: str) -> Found:
    return Found(name, "ssh_hosts")


def address(text: str, by: str = "subnet", said: str = "") -> Found:
    return Found(text, by, text, said)


def surveyed(*machines: HostFacts, found: tuple[Found, ...], **failed: str) -> Survey:
    seen = survey(*machines, failed={name.replace("_", "-"): why for name, why in failed.items()})
    return Survey(seen.hosts, seen.failed, found=found)


def settle(text: str, seen: Survey) -> tuple[Loaded, Resolution]:
    loaded = load(text)
    grown = settled(loaded, seen, excluded(loaded, seen.names))
    return grown, resolve(grown, seen, CONTROLLER)


def said(loaded: Loaded) -> str:
    return "\n".join(map(str, loaded.notices))


def test_found_nodes_follow_the_written_ones() -> None:
    """Ranks go to hand-written nodes first, then in the order of the search."""
    text = f'{HEAD}{SEARCH}[[node]]\nssh = "own"\n'
    found = (alias("gpu-b"), address("10.0.5.7"))
    machines = [
        machine(name, f"10.0.5.{last}/24")
        for name, last in (("own", 2), ("10.0.5.7", 7), ("gpu-b", 3))
    ]

    loaded, group = settle(text, surveyed(*machines, found=found))

    assert [(seat.rank, seat.host, str(seat.peer)) for seat in group.seats] == [
        (0, "own", "10.0.5.2:29500"),
        (1, "gpu-b", "10.0.5.3:29500"),
        (2, "10.0.5.7", "10.0.5.7:29500"),
    ]
    assert str(loaded.place_of(("node", 1))) == "inventory.toml:5:1"
    assert str(loaded.place_of(("node", 2, "addr"))) == "inventory.toml:6:1"


def test_a_survey_that_is_saved_finds_the_same() -> None:
    """What was found stands in the file, so that it compiles with no host up."""
    found = (alias("gpu-b"), address("10.0.5.7", "mdns", "box"))
    machines = (machine("gpu-b", "10.0.5.3/24"), machine("10.0.5.7", "10.0.5.7/24"))
    seen = surveyed(*machines, found=found)

    again = load_survey(dump_survey(seen), "s.json")

    assert again == seen
    assert settle(HEAD + SEARCH, again) == settle(HEAD + SEARCH, seen)


def test_hosts_that_refuse_us_are_listed_and_no_error() -> None:
    """The reason is told where the search is written; the others form the group."""
    found = (alias("gpu-a"), address("10.0.5.7"))
    seen = surveyed(
        machine("10.0.5.7", "10.0.5.7/24"),
        found=found,
        gpu_a="connect to gpu-a: the host key of gpu-a is unknown: ED25519 SHA256:abc",
    )

    loaded, group = settle(HEAD + SEARCH, seen)

    assert [seat.host for seat in group.seats] == ["10.0.5.7"]
    (notice,) = loaded.notices
    assert notice.severity is Severity.WARNING
    assert str(notice).startswith("inventory.toml:5:1: discover.ssh_hosts: gpu-a: listed, not")
    assert "SHA256:abc" in str(notice)


def test_one_machine_under_two_names_is_one_node() -> None:
    """The written name, or the first found, stays; the other is reported."""
    found = (alias("gpu-b"), address("10.0.5.3"))
    own = machine("gpu-b", "10.0.5.3/24")
    twin = machine("10.0.5.3", "10.0.5.3/24", machine_id="machine-gpu-b", boot_id="boot-gpu-b")
    twin = HostFacts(twin.host, twin.hardware, own.network, twin.platform, twin.job)

    _, group = settle(HEAD + SEARCH, surveyed(twin, own, found=found))

    assert [seat.host for seat in group.seats] == ["gpu-b"]
    told = "\n".join(map(str, group.notices))
    assert "10.0.5.3 is gpu-b under another name: one machine, planned once" in told


def test_a_clone_with_the_same_machine_id_is_a_machine_of_its_own() -> None:
    """Another boot and another MAC make two, with a notice."""
    found = (alias("gpu-a"), alias("gpu-b"))
    machines = (
        machine("gpu-a", "10.0.5.2/24"),
        machine("gpu-b", "10.0.5.3/24", machine_id="machine-gpu-a"),
    )

    _, group = settle(HEAD + SEARCH, surveyed(*machines, found=found))

    assert [seat.host for seat in group.seats] == ["gpu-a", "gpu-b"]
    assert "gpu-a and gpu-b have one machine-id" in "\n".join(map(str, group.notices))


@pytest.mark.parametrize(
    ("exclude", "why"),
    [("10.0.5.3", "it has the address 10.0.5.3"), ("real-name", "it is called Real-Name")],
)
def test_a_host_may_turn_out_to_be_excluded(exclude: str, why: str) -> None:
    """An alias says nothing of addresses and names; the host itself does."""
    text = f'{HEAD}{SEARCH}exclude = ["{exclude}"]\n'
    found = (alias("gpu-a"), alias("gpu-b"))
    machines = (
        machine("gpu-a", "10.0.5.2/24"),
        machine("gpu-b", "10.0.5.3/24", hostname="Real-Name"),
    )

    loaded, group = settle(text, surveyed(*machines, found=found))

    assert [seat.host for seat in group.seats] == ["gpu-a"]
    assert f"gpu-b: listed, and excluded: {why}" in said(loaded)


def test_an_address_of_containers_excludes_nobody() -> None:
    """docker0 has the same address everywhere."""
    text = f'{HEAD}{SEARCH}exclude = ["172.17.0.0/16"]\n'
    own = interface("eth0", "10.0.5.2/24", mac="02:a")
    made = interface("docker0", "172.17.0.1/16", kind="bridge")
    host = machine("gpu-a", "10.0.5.2/24")
    host = HostFacts(host.host, host.hardware, network(own, made), host.platform, host.job)

    _, group = settle(text, surveyed(host, found=(alias("gpu-a"),)))

    assert [seat.host for seat in group.seats] == ["gpu-a"]


def test_the_port_of_discover_counts_where_it_is_written() -> None:
    """It is upstream's stage port; unwritten, found nodes get data_port as all others do."""
    found = (alias("gpu-a"), address("10.0.5.7"))
    machines = (machine("gpu-a", "10.0.5.2/24"), machine("10.0.5.7", "10.0.5.7/24"))
    seen = surveyed(*machines, found=found)

    plain = settle(HEAD + SEARCH, seen)[1].peers
    written = settle(f"{HEAD}{SEARCH}port = 9100\n", seen)[1]

    assert plain == ("10.0.5.2:29500", "10.0.5.7:29500")
    assert written.peers == ("10.0.5.2:9100", "10.0.5.7:9100")
    assert written.seats[0].why["port"].startswith("inventory.toml:8:1: discover.port")


def test_what_discover_says_of_nodes_is_theirs() -> None:
    """ckpt_dir, device and precision; a device that is forced is not the best one."""
    text = f'{HEAD}{SEARCH}ckpt_dir = "/models"\ndevice = "cpu"\nprecision = "f16"\n'

    _, group = settle(text, surveyed(machine("gpu-a", "10.0.5.2/24"), found=(alias("gpu-a"),)))

    (seat,) = group.seats
    assert (seat.share.ckpt_dir, seat.devices, seat.share.precision) == ("/models", ("cpu",), "f16")
    assert seat.why["device"].startswith("inventory.toml:9:1")


def test_without_a_probe_found_hosts_are_unmanaged_nodes() -> None:
    """Upstream's way: address and stage port, the cpu, and nobody logs in anywhere."""
    text = f"{HEAD}{SEARCH}probe = false\n"
    found = (address("10.0.5.7"), address("10.0.5.8"))

    loaded, group = settle(text, surveyed(found=found))

    assert targets(with_nodes(load(text), found)).targets == ()
    assert group.peers == ("10.0.5.7:9100", "10.0.5.8:9100")
    assert [(seat.managed, seat.devices) for seat in group.seats] == [(False, ("cpu",))] * 2
    assert loaded.notices == ()


def test_an_alias_that_is_no_host_name_is_no_peer_address() -> None:
    """Without a probe the alias is all there is to dial, so it has to be one."""
    with pytest.raises(CompileError, match=r"discover\.ssh_hosts: 'gpu a\*' is neither"):
        with_nodes(load(f"{SEARCH}probe = false\n"), [Found("gpu a*", "ssh_hosts")])


def test_an_empty_search_is_an_error_that_says_why() -> None:
    """All that was said of the search stands with it."""
    seen = surveyed(found=(alias("gpu-a"),), gpu_a="no answer in time")

    with pytest.raises(CompileError) as caught:
        settle(HEAD + SEARCH, seen)

    assert "gpu-a: listed, not taken: no answer in time" in str(caught.value)
    assert "no node with a rank is left or was found" in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("expect = 3", "job.expect: 3 expected, 1 found: gpu-a"),
        ("min_nodes = 2", "job.min_nodes: 2 wanted, 1 found"),
    ],
)
def test_too_few_found_nodes_are_refused(keys: str, message: str) -> None:
    """A person who says how many there are does not want a smaller group in silence."""
    seen = surveyed(machine("gpu-a", "10.0.5.2/24"), found=(alias("gpu-a"),))

    with pytest.raises(CompileError) as caught:
        settle(f"{HEAD}{keys}\n{SEARCH}", seen)

    assert message in str(caught.value)


def test_sudo_is_tried_on_no_host_before_it_is_to_be_a_node() -> None:
    """Strangers are asked without it; then those in the plan again, unless they let root in."""
    found = (alias("gpu-a"), alias("gpu-b"), alias("gpu-c"))
    loaded = load(f'{HEAD}{SEARCH}[[node]]\nssh = "own"\n')
    whole = with_nodes(loaded, found)
    strangers = {"gpu-a", "gpu-b", "gpu-c"}

    first = gently(targets(whole), strangers)
    assert [one.host.name for one in first.targets if one.enquiry.sudo] == ["own"]
    assert len(first.targets) == 4

    machines = (
        machine("own", "10.0.5.9/24"),
        machine("gpu-a", "10.0.5.2/24"),
        machine("gpu-b", "10.0.5.3/24", uid=0),
    )
    seen = surveyed(*machines, found=found, gpu_c="no answer")
    chosen = settled(loaded, seen, excluded(loaded, {}))

    again = asked_again(targets(chosen), seen, strangers)
    assert [(one.host.name, one.enquiry.sudo) for one in again.targets] == [("gpu-a", True)]


def test_only_who_is_to_be_a_node_is_measured() -> None:
    """Once each, root too; not a machine's second name, nor who turns out to be excluded."""
    found = tuple(map(alias, ("gpu-a", "gpu-b", "gpu-c")))
    loaded = load(f'{HEAD}{SEARCH}exclude = ["gpu-c.lab"]\n[[node]]\nssh = "own"\n')
    whole = targets(with_nodes(loaded, found), bench=True)
    own = machine("gpu-a", "10.0.5.2/24", uid=0)
    twin = replace(own, host=replace(own.host, name="gpu-b"))
    other = machine("gpu-c", "10.0.5.4/24", hostname="gpu-c.lab")

    first = gently(whole, {"gpu-a", "gpu-b", "gpu-c"})
    seen = surveyed(machine("own", "10.0.5.9/24"), own, twin, other, found=found)
    chosen = settled(loaded, seen, excluded(loaded, seen.names))
    again = asked_again(targets(chosen, bench=True), seen, {"gpu-a", "gpu-b", "gpu-c"})

    assert [one.host.name for one in first.targets if one.enquiry.bench] == ["own"]
    assert [(one.host.name, one.enquiry.bench) for one in again.targets] == [("gpu-a", True)]


def test_the_concrete_inventory_has_what_was_found_written() -> None:
    """It searches for nothing, and resolves to the same group."""
    found = (alias("gpu-a"), address("10.0.5.7", "mdns", "box"))
    machines = (machine("gpu-a", "10.0.5.2/24"), machine("10.0.5.7", "10.0.5.7/24"))
    seen = surveyed(*machines, found=found)
    loaded, group = settle(HEAD + SEARCH, seen)

    written = load(resolve_toml(group, loaded))

    assert written.inventory.discover.is_empty
    assert [node.ssh for node in written.inventory.node] == ["gpu-a", "10.0.5.7"]
    settled_keys = {"addr", "ssh", "device", "rank", "python"}
    assert [node.model_fields_set for node in written.inventory.node] == [settled_keys] * 2
    assert resolve(written, survey(*machines), CONTROLLER).peers == group.peers
