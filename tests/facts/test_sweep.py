"""What a scan tries, and when: ranges of addresses, counted and never listed."""

from ipaddress import IPv4Interface, IPv4Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.facts.feed import Feed
from rlxdeploy.facts.sweep import Pace, Sweep, estimate, hosts, pace_for, sweep
from rlxdeploy.model.survey import Interface, Network

LO = Interface("lo", "", up=True, mtu=65536, addresses=("127.0.0.1/8",), kind="loopback")


def here(*addresses: str, kind: str = "", up: bool = True) -> Network:
    return Network((LO, Interface("eth0", "", up=up, mtu=1500, addresses=addresses, kind=kind)))


def listed(found: Sweep) -> tuple[list[str], list[str]]:
    """Return the addresses behind a router and those on our links, as text."""
    return (
        [found.text(number) for span in found.routed for number in span],
        [found.text(number) for span in found.on_link for number in span],
    )


@pytest.mark.parametrize(
    ("subnet", "count", "first", "last"),
    [
        ("10.0.0.9/32", 1, "10.0.0.9", "10.0.0.9"),
        ("10.0.0.0/31", 2, "10.0.0.0", "10.0.0.1"),
        ("10.0.0.0/30", 2, "10.0.0.1", "10.0.0.2"),
        ("10.0.5.0/24", 254, "10.0.5.1", "10.0.5.254"),
        ("10.0.0.0/16", 65534, "10.0.0.1", "10.0.255.254"),
        ("fd00::5/128", 1, "fd00::5", "fd00::5"),
        ("fd00::/127", 2, "fd00::", "fd00::1"),
        ("fd00::/112", 65535, "fd00::1", "fd00::ffff"),
    ],
)
def test_a_subnet_has_the_hosts_that_upstream_counts(
    subnet: str, count: int, first: str, last: str
) -> None:
    """Network and broadcast are left out where there are more than two addresses."""
    found = sweep(ip_network(subnet), Network(()))

    assert (found.total, found.on_link) == (count, ())
    assert (found.text(found.routed[0][0]), found.text(found.routed[-1][-1])) == (first, last)


@pytest.mark.parametrize(
    ("excluded", "left"),
    [
        ((), ["1", "2", "3", "4", "5", "6"]),
        (("10.0.0.3/32",), ["1", "2", "4", "5", "6"]),
        (("10.0.0.0/30",), ["4", "5", "6"]),
        (("10.0.0.1/32", "10.0.0.6/32", "10.0.0.4/32"), ["2", "3", "5"]),
        (("10.0.0.0/8",), []),
        (("10.0.1.0/24", "fd00::/64"), ["1", "2", "3", "4", "5", "6"]),
    ],
)
def test_what_is_excluded_is_not_tried(excluded: tuple[str, ...], left: list[str]) -> None:
    """Single addresses, overlapping subnets and those of the other family are all understood."""
    found = sweep(ip_network("10.0.0.0/29"), Network(()), map(ip_network, excluded))

    assert listed(found)[0] == [f"10.0.0.{number}" for number in left]


@pytest.mark.parametrize(
    ("machine", "routed", "on_link"),
    [
        (here("10.0.0.3/24"), [], ["1", "2", "4", "5", "6"]),
        (here("10.0.0.3/30"), ["4", "5", "6"], ["1", "2"]),
        (here("10.0.0.3/32"), ["1", "2", "4", "5", "6"], []),
        (here("10.0.0.3/24", "10.0.0.5/24"), [], ["1", "2", "4", "6"]),
        (here("10.0.0.3/24", kind="tunnel"), ["1", "2", "4", "5", "6"], []),
        (here("10.0.0.3/24", up=False), ["1", "2", "4", "5", "6"], []),
        (here("10.9.0.3/24"), ["1", "2", "3", "4", "5", "6"], []),
    ],
    ids=["on-link", "half on-link", "host route", "two of its own", "tunnel", "down", "elsewhere"],
)
def test_the_machine_itself_is_left_out_and_its_links_are_told_apart(
    machine: Network, routed: list[str], on_link: list[str]
) -> None:
    """On-link is what a subnet of an interface holds that is up and has neighbours."""
    found = listed(sweep(ip_network("10.0.0.0/29"), machine))

    assert found == ([f"10.0.0.{n}" for n in routed], [f"10.0.0.{n}" for n in on_link])


def test_a_broadcast_of_our_own_is_no_host() -> None:
    """Within a wider subnet the two addresses that our own one reserves are passed over."""
    found = listed(sweep(ip_network("10.0.0.0/28"), here("10.0.0.9/30")))

    assert found[1] == ["10.0.0.10"]
    assert not {"10.0.0.8", "10.0.0.11"} & {*found[0]}


def test_loopback_is_the_machine_itself() -> None:
    """All of 127.0.0.0/8 leads back here, so nothing of it is tried."""
    assert sweep(ip_network("127.0.0.0/24"), here()).total == 0


@given(
    st.integers(24, 32),
    st.lists(st.tuples(st.integers(0, 255), st.integers(26, 32)), max_size=4),
    st.lists(st.tuples(st.integers(0, 255), st.integers(24, 30)), max_size=3),
)
def test_each_address_is_tried_once_or_left_out(
    prefix: int, excluded: list[tuple[int, int]], own: list[tuple[int, int]]
) -> None:
    """The ranges hold what a list of all addresses, filtered one by one, would hold."""
    subnet = ip_network(f"10.0.0.0/{prefix}")
    cut = [IPv4Network((f"10.0.0.{number}", bits), strict=False) for number, bits in excluded]
    links = tuple(f"10.0.0.{number}/{bits}" for number, bits in own)

    routed, on_link = listed(sweep(subnet, here(*links), cut))

    mine = {text.partition("/")[0] for text in links}
    for link in map(IPv4Interface, links):
        mine |= {str(link.network[0]), str(link.network[-1])}
    wanted = [
        text
        for text in map(str, map(ip_address, hosts(subnet)))
        if text not in mine and not any(ip_address(text) in one for one in cut)
    ]
    assert sorted(routed + on_link) == sorted(wanted)
    for text in wanted:
        near = any(ip_address(text) in ip_network(link, strict=False) for link in links)
        assert text in (on_link if near else routed)


def test_all_that_stands_in_the_neighbour_table_at_once_is_less_than_its_free_places() -> None:
    """Whoever is begun holds a place for three seconds; no such window overflows the table."""
    pace, free = pace_for(1024, 24), 1000

    for tenths in range(200):
        start = tenths / 10
        assert pace.begun_by(start + 3) - (pace.begun_by(start) if tenths else 0) <= free


def test_a_usual_table_takes_a_whole_24_at_once() -> None:
    """With the kernel's own 1,024 places, 254 neighbours are asked in one go."""
    assert pace_for(1024, 30).begun_by(0) >= 254


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        (Sweep(4, routed=(range(254),)), 0.3),
        (Sweep(4, routed=(range(65534),)), 17 * 0.3),
        (Sweep(4, on_link=(range(254),)), 0.3),
        (Sweep(4, on_link=(range(3000),)), 10.3),
        (Sweep(4), 0.0),
    ],
    ids=["24", "16 behind a router", "24 on-link", "paced", "nothing"],
)
def test_the_estimate_is_what_silence_takes(found: Sweep, seconds: float) -> None:
    """Rounds of the timeout behind a router, shares a second on our own links."""
    assert estimate(found, Pace(300), 4000, 0.3, 1) == pytest.approx(seconds)


def test_own_links_wait_for_their_pace_and_others_do_not() -> None:
    """Our links get their share at once, then second by second; others go in between."""
    feed = Feed(Sweep(4, (range(100, 102),), (range(6),)), (22,), Pace(2))

    first = [feed.take(0.0) for _ in range(5)]
    assert first == [(0, 22), (1, 22), (100, 22), (101, 22), None]
    assert not feed.can_give(0.9)
    assert [feed.take(2.0) for _ in range(3)] == [(2, 22), (3, 22), None]
    assert [feed.take(9.0) for _ in range(3)] == [(4, 22), (5, 22), None]
    assert feed.begun == feed.total == 8


def test_every_port_of_an_address_is_tried() -> None:
    """The ports of one address follow one another and count as one neighbour."""
    feed = Feed(Sweep(4, on_link=(range(2),)), (22, 2222), Pace(1))

    assert [feed.take(0.0) for _ in range(3)] == [(0, 22), (0, 2222), None]


def test_a_router_is_found_before_all_connects_are_sent_to_it() -> None:
    """The kernel drops what it cannot keep while it asks for the router: few go first."""
    many = Sweep(4, routed=(range(1000, 3000),))

    silent = Feed(many, (22,), Pace(1))
    assert len([pair for _ in range(2000) if (pair := silent.take(0.0))]) == 64
    assert not silent.can_give(0.01)
    assert silent.can_give(0.08)

    talking = Feed(many, (22,), Pace(1))
    assert len([pair for _ in range(64) if (pair := talking.take(0.0))]) == 64
    talking.heard(5)
    assert not talking.can_give(0.01)
    talking.heard(1003)
    assert talking.can_give(0.01)
