"""Subnets as people write them (python/cpython #75778, netaddr #96, localsend PR 3283)."""

import pytest

from rlxdeploy.model.cidr import check_scannable, parse_cidr

SIZES = {
    "10.0.0.9/32": 1,
    "10.0.0.0/31": 2,
    "10.0.0.0/30": 2,
    "10.0.5.0/24": 254,
    "10.0.0.0/16": 65534,
    "fd00::5/128": 1,
    "fd00::/127": 2,
    "fd00::/112": 65535,
}


@pytest.mark.parametrize(("text", "hosts"), SIZES.items(), ids=SIZES.keys())
def test_a_subnet_holds_so_many_hosts(text: str, hosts: int) -> None:
    """A subnet of one or two addresses has nothing reserved in it."""
    assert check_scannable(text).hosts == hosts


def test_bits_beyond_the_prefix_are_masked_and_noticed() -> None:
    """10.0.5.7/24 is the subnet 10.0.5.0/24, and the caller can tell."""
    parsed = parse_cidr("10.0.5.7/24")

    assert (str(parsed.network), parsed.masked) == ("10.0.5.0/24", True)
    assert not parse_cidr("10.0.5.0/24").masked


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.0",
        "10.0.0/24",
        "010.0.0.0/24",
        " /24",
        "/24",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/024",
        "10.0.0.0/255.255.255.0",
        "10.0.0.0/24/8",
        " 10.0.0.0/24",
        "fd00::/129",
        "fd00:::/64",
        "gpu-a/24",
    ],
)
def test_a_bad_subnet_is_refused_in_one_clear_line(text: str) -> None:
    """The message shows the text, whatever is wrong with it."""
    with pytest.raises(ValueError, match=r"prefix|address") as caught:
        parse_cidr(text)

    assert repr(text) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "count", "time"),
    [
        ("100.64.0.0/10", "4,194,302", "69 minutes"),
        ("10.0.0.0/15", "131,070", "2 minutes"),
        ("0.0.0.0/0", "4,294,967,294", "49 days"),
        ("fd00::/111", "131,071", "2 minutes"),
        ("fd00::/64", "18,446,744,073,709,551,615", "584,942,417 years"),
    ],
)
def test_a_subnet_too_big_to_scan_is_refused_with_its_size(
    text: str, count: str, time: str
) -> None:
    """The count, the time it would take and the ways out are named, and nothing is walked."""
    with pytest.raises(ValueError, match=r"ssh_hosts.*mdns.*prefix") as caught:
        check_scannable(text)

    assert f"{count} addresses" in str(caught.value)
    assert time in str(caught.value)
