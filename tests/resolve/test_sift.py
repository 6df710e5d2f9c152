"""Which found hosts are worth a survey, before anybody has asked them."""

import pytest

from rlxdeploy.model.found import Found
from rlxdeploy.resolve.aliases import alias_of, bare_host, port_to_dial, way
from rlxdeploy.resolve.sift import excluded, names_excluded, sifted
from tests.resolve.lab import load

SEARCH = '[discover]\nssh_hosts = ["gpu-a", "gpu-b"]\nsubnet = "10.0.5.0/24"\nmdns = true\n'


def alias(name: str) -> Found:
    return Found(name, "ssh_hosts")


def address(text: str, by: str = "subnet", said: str = "", port: int = 22) -> Found:
    return Found(alias_of(text, port, 22), by, text, said)


def sift(text: str, *found: Found, **names: tuple[str, ...]) -> tuple[list[str], str]:
    """Return what is left to survey, and all that is said."""
    loaded = load(text)
    result = sifted(loaded, found, excluded(loaded, names))
    return [one.ssh for one in result.found], "\n".join(map(str, result.notices))


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        ([], ["gpu-a", "10.0.5.7", "10.0.5.8"]),
        (["gpu-a"], ["10.0.5.7", "10.0.5.8"]),
        (["GPU-A"], ["10.0.5.7", "10.0.5.8"]),
        (["10.0.5.7"], ["gpu-a", "10.0.5.8"]),
        (["10.0.5.0/29"], ["gpu-a", "10.0.5.8"]),
        (["lab-nas"], ["gpu-a", "10.0.5.7"]),
        (["printer"], ["gpu-a", "10.0.5.8"]),
        (["fd00::/64", "10.9.0.1"], ["gpu-a", "10.0.5.7", "10.0.5.8"]),
    ],
)
def test_what_is_excluded_is_not_even_surveyed(exclude: list[str], left: list[str]) -> None:
    """By alias, address, subnet, announced name, and a name that stands for an address."""
    text = f"{SEARCH}exclude = {exclude}\n".replace("'", '"')
    found = (alias("gpu-a"), address("10.0.5.7"), address("10.0.5.8", "mdns", "lab-nas"))

    kept, told = sift(text, *found, printer=("10.0.5.7",))

    assert kept == left
    assert told.count(", and excluded") == 3 - len(left)


def test_names_to_exclude_are_looked_up() -> None:
    """Addresses and subnets need no resolver."""
    text = f'{SEARCH}exclude = ["gw.lab", "10.0.5.1", "10.0.5.8/29", "fd00::1"]\n'

    assert names_excluded(load(text)) == ("gw.lab",)


@pytest.mark.parametrize(
    ("node", "found", "told"),
    [
        ('ssh = "gpu-a"', alias("gpu-a"), "gpu-a: found again: it is the node at"),
        ('ssh = "ml@gpu-a"', alias("gpu-a"), "gpu-a: found again: it is the node at"),
        ('ssh = "x"\naddr = "10.0.5.7:9100"', address("10.0.5.7"), "it is the node at"),
        ('addr = "10.0.5.7:1"\nmanaged = false', address("10.0.5.7"), "it is the node at"),
        ('ssh = "10.0.5.7"', address("10.0.5.7", "mdns", "box"), "10.0.5.7 (box): found again"),
    ],
)
def test_a_written_node_is_not_found_again(node: str, found: Found, told: str) -> None:
    """It stays as it is written, also where nobody may ask it; the find is reported."""
    kept, notices = sift(f"{SEARCH}[[node]]\n{node}\n", found)

    assert kept == []
    assert told in notices


def test_a_host_found_twice_is_surveyed_once() -> None:
    """The first find counts: aliases, then addresses, then who announces himself."""
    twice = (alias("gpu-a"), address("10.0.5.7"), address("10.0.5.7", "mdns", "box"))

    kept, told = sift(SEARCH, *twice, alias("gpu-a"))

    assert kept == ["gpu-a", "10.0.5.7"]
    assert "10.0.5.7 (box): found again: it is found by subnet already" in told
    assert "gpu-a: found again: it is found by ssh_hosts already" in told


def test_no_more_than_max_hosts_are_surveyed() -> None:
    """The first ones are, and how many are left out is said."""
    found = [address(f"10.0.5.{number}") for number in range(1, 8)]

    kept, told = sift(f"{SEARCH}max_hosts = 3\n", *found)

    assert kept == ["10.0.5.1", "10.0.5.2", "10.0.5.3"]
    assert "4 found hosts more are left out" in told


def test_two_ways_to_one_address_stay_two_until_they_are_asked() -> None:
    """The ports of a gateway lead to as many machines; a user is no other machine."""
    gateway = ("ssh://gw:2201", "ssh://ml@gw:2202", "ssh://ml@gw:2201", "gw")

    kept, told = sift(SEARCH, *map(alias, gateway))

    assert kept == ["ssh://gw:2201", "ssh://ml@gw:2202", "gw"]
    assert told.count("found again") == 1
    assert "ssh://ml@gw:2201: found again: it is found by ssh_hosts already" in told


@pytest.mark.parametrize(
    ("node", "kept"),
    [
        ('ssh = "ssh://gw:2201"', ["ssh://gw:2202"]),
        ('ssh = "gw"', ["ssh://gw:2201", "ssh://gw:2202"]),
        ('ssh = "x"\naddr = "10.0.5.7:9100"', ["ssh://10.0.5.7:2222"]),
        ('addr = "10.0.5.7:9100"\nmanaged = false', []),
    ],
    ids=["the same way", "a way without a port", "may be another's", "cannot be asked"],
)
def test_a_port_sets_a_find_apart_from_a_written_node(node: str, kept: list[str]) -> None:
    """Unless nobody may ask that node who it is: then its address has to do."""
    found = (alias("ssh://gw:2201"), alias("ssh://gw:2202"))
    if "10.0.5.7" in node:
        found = (address("10.0.5.7"), address("10.0.5.7", "mdns", "box", port=2222))

    assert sift(f"{SEARCH}[[node]]\n{node}\n", *found)[0] == kept


@pytest.mark.parametrize(
    ("node", "kept"),
    [
        ('addr = "10.0.5.7:9100"', ["10.0.5.8"]),
        ('addr = "10.0.5.7:9101"', ["10.0.5.7", "10.0.5.8"]),
        ('ssh = "10.0.5.7"\naddr = "gpu-a:9100"', ["10.0.5.7", "10.0.5.8"]),
        ('ssh = "10.0.5.7"', ["10.0.5.7", "10.0.5.8"]),
    ],
    ids=["the same addr", "another port", "another name", "no addr"],
)
def test_without_a_probe_only_the_exact_addr_is_a_duplicate(node: str, kept: list[str]) -> None:
    """As upstream compares them, as text; the stage port is part of it."""
    text = f"{SEARCH}probe = false\n[[node]]\n{node}\nmanaged = false\n"

    kept_now, told = sift(text, address("10.0.5.7"), address("10.0.5.8"))

    assert kept_now == kept
    assert told.count("found again: it is the node at") == 2 - len(kept)


@pytest.mark.parametrize(
    ("text", "host", "leads"),
    [
        ("gpu-a", "gpu-a", "gpu-a"),
        ("ml@GPU-A", "gpu-a", "gpu-a"),
        ("fd00::5", "fd00::5", "fd00::5"),
        ("ssh://ml@gpu-a", "gpu-a", "gpu-a"),
        ("ssh://ml@gpu-a:2222", "gpu-a", "gpu-a:2222"),
        ("ssh://[fd00::5]", "fd00::5", "fd00::5"),
        ("ssh://[fd00::5]:2222/", "fd00::5", "[fd00::5]:2222"),
    ],
)
def test_an_alias_has_a_host_and_leads_somewhere(text: str, host: str, leads: str) -> None:
    """User and form of writing aside."""
    assert (bare_host(text), way(text)) == (host, leads)


@pytest.mark.parametrize(
    ("place", "port", "usual", "alias"),
    [
        ("10.0.5.7", 22, 22, "10.0.5.7"),
        ("10.0.5.7", 2222, 22, "ssh://10.0.5.7:2222"),
        ("10.0.5.7", 2222, 2222, "10.0.5.7"),
        ("10.0.5.7", 22, 2222, "ssh://10.0.5.7:22"),
        ("fd00::5", 2222, 22, "ssh://[fd00::5]:2222"),
    ],
)
def test_a_port_stands_in_an_alias_where_ssh_would_dial_another(
    place: str, port: int, usual: int, alias: str
) -> None:
    """The usual port is the one of `[ssh]`, or 22."""
    assert alias_of(place, port, usual) == alias


@pytest.mark.parametrize(
    ("answered", "usual", "port"),
    [
        ((2222,), 22, 2222),
        ((2222, 22), 22, 22),
        ((2222, 22), 2222, 2222),
        ((2201, 2202), 22, 2201),
        ((9100,), 22, 22),
        ((9100, 2222), 22, 2222),
    ],
)
def test_the_port_that_answered_is_dialled(
    answered: tuple[int, ...], usual: int, port: int
) -> None:
    """SSH's own before others, the first written of those; the stage port speaks no SSH."""
    assert port_to_dial(answered, usual, 9100) == port
