"""Which interfaces are asked by mDNS, and which answers are believed."""

import pytest

from rlxdeploy.facts.mdns import SSH, Announced, askable, named, sort_out
from rlxdeploy.model.survey import Interface, Network


def interface(name: str, *addresses: str, kind: str = "", up: bool = True) -> Interface:
    return Interface(name, "", up=up, mtu=1500, addresses=addresses, kind=kind)


LAN = interface("eth0", "10.0.5.2/24", "fd00::2/64", "fe80::2/64")
HERE = Network(
    (
        interface("lo", "127.0.0.1/8", "::1/128", kind="loopback"),
        LAN,
        interface("eth1", "fe80::3/64"),
        interface("wlan0", "192.168.1.2/24", up=False),
        interface("docker0", "172.17.0.1/16", kind="bridge"),
        interface("br-1f", "172.18.0.1/16", kind="bridge"),
        interface("br0", "10.9.0.1/24", kind="bridge"),
        interface("tun0", "10.8.0.2/24", kind="tunnel"),
    )
)


@pytest.mark.parametrize(
    ("only", "names"),
    [(None, ["eth0", "br0"]), ("eth0", ["eth0"]), ("docker0", ["docker0"]), ("eth9", [])],
)
def test_interfaces_with_other_machines_are_asked(only: str | None, names: list[str]) -> None:
    """Loopback, tunnels, what is down and what containers made is not, but for a chosen one."""
    assert [one.name for one in askable(HERE, only)] == names


@pytest.mark.parametrize(
    ("addresses", "host"),
    [
        (("10.0.5.7",), "10.0.5.7"),
        (("172.17.0.1", "10.0.5.7"), "10.0.5.7"),
        (("fd00::7", "10.0.5.7"), "10.0.5.7"),
        (("fe80::7", "fd00::7"), "fd00::7"),
        (("172.17.0.9",), None),
        (("fe80::7",), None),
        (("100.64.0.7",), None),
        ((), None),
    ],
    ids=[
        *("plain", "docker0 beside", "both families", "IPv6 alone", "docker0 alone"),
        *("link-local alone", "overlay alone", "no address"),
    ],
)
def test_only_addresses_on_a_link_that_was_asked_are_believed(
    addresses: tuple[str, ...], host: str | None
) -> None:
    """A host that names none such is dropped, and named among the dropped."""
    answer = Announced(SSH, "gpu-a", addresses, 22, "eth0")

    heard = sort_out([answer], [LAN])

    assert heard.hosts == ({host: answer} if host else {})
    assert heard.dropped == (() if host else (answer,))


def test_an_answer_is_judged_by_the_link_it_came_in_on() -> None:
    """An address of another link that was asked, too, is no nearer than any other."""
    wlan = interface("wlan0", "192.168.1.2/24")
    strange = Announced(SSH, "gpu-a", ("192.168.1.7",), 22, "eth0")
    near = Announced(SSH, "gpu-b", ("192.168.1.8",), 22, "wlan0")

    heard = sort_out([strange, near], [LAN, wlan])

    assert heard.hosts == {"192.168.1.8": near}
    assert heard.dropped == (strange,)


def test_who_is_believed_on_one_link_is_not_dropped_on_another() -> None:
    """A host on both links answers on both, with the address of one only."""
    wlan = interface("wlan0", "192.168.1.2/24")
    answers = [Announced(SSH, "gpu-a", ("10.0.5.7",), 22, name) for name in ("wlan0", "eth0")]

    heard = sort_out(answers, [LAN, wlan])

    assert (list(heard.hosts), heard.dropped) == (["10.0.5.7"], ())


def test_a_host_with_two_services_is_one() -> None:
    """Instances at one address are one host, and its SSH is the one that counts."""
    both = [
        Announced("_rlx-node._tcp.local.", "alpha", ("10.0.5.7",), 29500, "eth0"),
        Announced(SSH, "zeta", ("10.0.5.7",), 22, "eth0"),
    ]

    assert sort_out(both, [LAN]).hosts == {"10.0.5.7": both[1]}


def test_the_controller_does_not_find_itself() -> None:
    """An answer with our own address on that link is ours, whatever else it names."""
    own = Announced(SSH, "me", ("10.0.5.2", "10.0.5.7"), 22, "eth0")

    heard = sort_out([own], [LAN])

    assert (heard.hosts, heard.dropped) == ({}, ())


def test_who_was_asked_is_said_with_addresses() -> None:
    """A person sees in which subnets nobody answered."""
    assert named(askable(HERE)) == "eth0 (10.0.5.2/24, fd00::2/64), br0 (10.9.0.1/24)"
