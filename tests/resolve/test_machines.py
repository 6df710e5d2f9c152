"""Hosts are one machine where three things say so, whoever answered first."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.errors import CompileError
from rlxdeploy.model.survey import HostFacts, Interface, Network, Survey
from rlxdeploy.resolve.machines import merged
from rlxdeploy.resolve.resolve import resolve
from tests.resolve.lab import CONTROLLER, HOSTS, interface, load, machine, survey, three

A_MAC, B_MAC = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


def face(mac: str, name: str = "eth0", kind: str = "") -> Interface:
    return interface(name, mac=mac, kind=kind)


def host(name: str, *faces: Interface, machine_id: str = "m", boot_id: str = "b") -> HostFacts:
    """Return a host that says of itself what it is by these interfaces."""
    facts = machine(name, machine_id=machine_id, boot_id=boot_id)
    return replace(facts, network=Network(faces))


ONE = {
    "machine-id, boot-id and MAC": (host("a", face(A_MAC)), host("b", face(A_MAC))),
    "a MAC in other letters": (host("a", face(A_MAC)), host("b", face(A_MAC.upper()))),
    "one MAC of several": (
        host("a", face(A_MAC), face("02::1", "eth1")),
        host("b", face(A_MAC), face("02::2", "eth1")),
    ),
}
TWO = {
    "another boot-id": (host("a", face(A_MAC)), host("b", face(A_MAC), boot_id="c")),
    "another machine-id": (host("a", face(A_MAC)), host("b", face(A_MAC), machine_id="n")),
    "no MAC in common": (host("a", face(A_MAC)), host("b", face(B_MAC))),
    "no machine-id": (
        host("a", face(A_MAC), machine_id=""),
        host("b", face(A_MAC), machine_id=""),
    ),
    "no boot-id": (host("a", face(A_MAC), boot_id=""), host("b", face(A_MAC), boot_id="")),
    "a MAC of zeros": (
        host("a", face("00:00:00:00:00:00")),
        host("b", face("00:00:00:00:00:00")),
    ),
} | {
    f"the MAC of {name} {kind}".strip(): (
        host("a", face(A_MAC, name, kind)),
        host("b", face(A_MAC, name, kind)),
    )
    for name, kind in (
        ("lo", "loopback"),
        ("lxdbr0", "bridge"),
        ("tun0", "tunnel"),
        ("veth1f", ""),
        ("docker0", ""),
        ("br-1f", ""),
        ("virbr0", ""),
        ("cni0", ""),
    )
}


@pytest.mark.parametrize("pair", ONE.values(), ids=ONE.keys())
def test_three_things_in_common_are_one_machine(pair: tuple[HostFacts, HostFacts]) -> None:
    """The second name is the first's machine."""
    assert merged(survey(*pair)) == {"b": "a"}


@pytest.mark.parametrize("pair", TWO.values(), ids=TWO.keys())
def test_anything_less_is_two_machines(pair: tuple[HostFacts, HostFacts]) -> None:
    """Copies of a system, and the devices that containers make, merge nobody."""
    assert merged(survey(*pair)) == {}


@given(st.permutations("abc"))
def test_a_name_between_two_makes_them_one(order: list[str]) -> None:
    """Two names without a MAC in common are one machine through a third, in whatever order."""
    hosts = {
        "a": host("a", face(A_MAC)),
        "b": host("b", face(A_MAC), face(B_MAC, "eth1")),
        "c": host("c", face(B_MAC)),
    }

    found = merged(survey(*(hosts[name] for name in order)))

    assert {*found} | {*found.values()} == {"a", "b", "c"}
    assert {*found.values()} == {order[0]}


def turned(facts: HostFacts, draw: st.DrawFn) -> HostFacts:
    """Return *facts* with everything turned round that has no order of its own."""
    faces = draw(st.permutations(facts.network.interfaces))
    shuffled = (replace(one, addresses=(*draw(st.permutations(one.addresses)),)) for one in faces)
    network = replace(facts.network, interfaces=(*shuffled,))
    return replace(facts, network=network)


@st.composite
def answered(draw: st.DrawFn) -> tuple[Survey, Survey]:
    """Draw machines that may be one, share nets or carry one address, and the same turned round."""
    faces = [
        interface("eth0", "10.0.0.1/24", "fe80::1/64", mac=A_MAC),
        interface("eth0", "10.0.0.2/24", mac=B_MAC),
        interface("eth1", "10.1.0.1/24", "10.0.0.1/24", mac="02::1"),
        interface("docker0", "172.17.0.1/16", mac="02::2", kind="bridge"),
    ]
    hosts = []
    for name in "abc":
        own = draw(st.lists(st.sampled_from(faces), min_size=1, max_size=3, unique=True))
        facts = machine(name, machine_id=draw(st.sampled_from("mn")), boot_id="b")
        hosts.append(replace(facts, network=Network((*own,), ("eth0",))))
    others = [turned(facts, draw) for facts in draw(st.permutations(hosts))]
    return survey(*hosts), survey(*others)


@given(answered())
def test_a_survey_in_any_order_resolves_to_the_same(pair: tuple[Survey, Survey]) -> None:
    """Neither who answered first nor the order of interfaces and addresses changes a thing."""
    assert outcome(pair[0]) == outcome(pair[1])


def outcome(found: Survey) -> object:
    """Return the group, or what stands in its way."""
    try:
        return resolve(load(HOSTS), found, CONTROLLER)
    except CompileError as error:
        return str(error)


def test_a_machine_goes_by_the_name_that_the_file_writes_first() -> None:
    """The survey's own order does not name the machine."""
    a, b, c = three()
    again = replace(a, host=b.host)

    group = resolve(load(HOSTS), survey(c, again, a), CONTROLLER)

    assert group.merged == {"b": "a"}
    assert list(group.hosts) == ["a", "c"]
