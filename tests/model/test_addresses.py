"""Addresses as people write them."""

import pytest

from rlxdeploy.model.addresses import HostPort, parse_address, parse_host

READ = {
    "a name": ("gpu-a", HostPort("gpu-a"), "gpu-a"),
    "a name in capitals": ("GPU-A.Lab:9100", HostPort("gpu-a.lab", 9100), "gpu-a.lab:9100"),
    "IPv4": ("10.0.0.5", HostPort("10.0.0.5"), "10.0.0.5"),
    "IPv4 with a port": ("10.0.0.5:29500", HostPort("10.0.0.5", 29500), "10.0.0.5:29500"),
    "IPv6": ("fd00::5", HostPort("fd00::5"), "[fd00::5]"),
    "IPv6 in brackets": ("[fd00::5]", HostPort("fd00::5"), "[fd00::5]"),
    "IPv6 with a port": ("[fd00::5]:29500", HostPort("fd00::5", 29500), "[fd00::5]:29500"),
    "IPv6 written long": ("FD00:0:0::5", HostPort("fd00::5"), "[fd00::5]"),
    "IPv6 with a zone": ("fe80::1%eth0", HostPort("fe80::1%eth0"), "[fe80::1%eth0]"),
    "IPv4 mapped into IPv6": ("::ffff:10.0.0.1", HostPort("10.0.0.1"), "10.0.0.1"),
    "mapped, with a port": ("[::ffff:10.0.0.1]:1", HostPort("10.0.0.1", 1), "10.0.0.1:1"),
}


@pytest.mark.parametrize(("text", "read", "shown"), READ.values(), ids=READ.keys())
def test_an_address_is_split_where_it_should_be(text: str, read: HostPort, shown: str) -> None:
    """Host and port come apart at the right colon, and go together in brackets again."""
    assert parse_address(text) == read
    assert str(read) == shown
    assert parse_address(shown) == read


REFUSED = {
    "": "neither",
    "a b": "neither",
    "-a": "neither",
    "10.0.0": "IPv4",
    "010.0.0.1": "IPv4",
    "256.0.0.1:1": "IPv4",
    "10.0.0.5:": "port",
    "10.0.0.5:0": "port",
    "10.0.0.5:65536": "port",
    "10.0.0.5:+1": "port",
    "10.0.0.5:٣": "port",
    "gpu:ssh": "port",
    "fd00::5::29500": r"\[fd00::5\]:29500",
    "a:b:c": r"\[fd00::5\]:29500",
    "[fd00::5": r"\[fd00::5\]:29500",
    "[10.0.0.5]:1": "IPv6",
    "[fd00::5]x": r"\[fd00::5\]:29500",
    "http://a": "neither|port|IPv6",
}


@pytest.mark.parametrize(("text", "told"), REFUSED.items(), ids=REFUSED.keys())
def test_a_bad_address_is_refused_in_one_line(text: str, told: str) -> None:
    """The message says what is wrong with which text."""
    with pytest.raises(ValueError, match=told) as caught:
        parse_address(text)

    assert "\n" not in str(caught.value)


def test_an_address_knows_its_kind() -> None:
    """Loopback, unspecified and zoned addresses are told from the rest."""
    assert parse_address("127.0.0.9:1").is_loopback
    assert parse_address("::1").is_loopback
    assert parse_address("LocalHost:1").is_loopback
    assert not parse_address("gpu-a").is_loopback
    assert parse_address("0.0.0.0:1").is_unspecified
    assert parse_address("[::]:1").is_unspecified
    assert parse_address("fe80::1%eth0").zone == "eth0"
    assert parse_address("fe80::1").zone == ""
    assert parse_host("FD00::0005") == "fd00::5"
