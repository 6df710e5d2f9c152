"""The environment of a rank: every name, meaning and default, and every way to get it wrong."""

from __future__ import annotations

from typing import Any, Dict, Optional

import pytest

from rlxdeploy.runtime.address import Address, parse_address
from rlxdeploy.runtime.errors import RefusedError, SettingsError
from rlxdeploy.runtime.node import Node
from rlxdeploy.runtime.settings import VARIABLES, Settings

TWO = "127.0.0.1:29500,127.0.0.1:29501"
PAIR = {"WORLD": "2", "PEERS": TWO}

DEFAULTS: Dict[str, Any] = {
    "rank": 0,
    "world": 1,
    "peers": (),
    "topology": "mesh",
    "heap_bytes": 64 << 20,
    "discover": False,
    "disc_port": 29600,
    "data_port": 29500,
    "discover_host": None,
    "deterministic": False,
    "wire": "rlx",
    "security": None,
    "join_timeout": 120.0,
    "peer_timeout": 10.0,
    "spin_us": 200,
}


def test_an_empty_environment_is_a_group_of_one() -> None:
    """Every default holds, and no PEERS are needed."""
    settings = Settings.from_env({})

    assert {name: getattr(settings, name) for name in DEFAULTS} == DEFAULTS
    assert settings.listen_address is None


ACCEPTED: Dict[str, Any] = {
    "plus": ({**PAIR, "RANK": "+1"}, "rank", 1),
    "peers": (
        {"WORLD": "2", "PEERS": "host-a:1, [fd00::1]:65535"},
        "peers",
        (Address("host-a", 1), Address("fd00::1", 65535)),
    ),
    "star": ({**PAIR, "TOPOLOGY": "star"}, "topology", "star"),
    "star-extra-peers": ({"TOPOLOGY": "star", "WORLD": "3", "PEERS": TWO}, "star", True),
    "dial-out": ({**PAIR, "DIAL_OUT": "1"}, "topology", "star"),
    "dial-out-wins": ({**PAIR, "DIAL_OUT": "true", "TOPOLOGY": "mesh"}, "topology", "star"),
    "dial-out-0": ({**PAIR, "DIAL_OUT": "0"}, "topology", "mesh"),
    "dial-out-false": ({**PAIR, "DIAL_OUT": "false"}, "topology", "mesh"),
    "heap": ({"HEAP_MB": "2"}, "heap_bytes", 2 << 20),
    "discover": ({"WORLD": "3", "DISCOVER": "1"}, "discover", True),
    "discover-empty": ({"WORLD": "3", "DISCOVER": ""}, "discover", True),
    "discover-0": ({"DISCOVER": "0"}, "discover", False),
    "discover-hides-peers": ({"WORLD": "3", "DISCOVER": "1", "PEERS": "?"}, "peers", ()),
    "deterministic": ({"RLX_DETERMINISTIC_REDUCE": "yes"}, "deterministic", True),
    "deterministic-0": ({"RLX_DETERMINISTIC_REDUCE": "0"}, "deterministic", False),
    "deterministic-empty": ({"RLX_DETERMINISTIC_REDUCE": ""}, "deterministic", False),
    "native": (
        {"RLX_WIRE": "native", "RLX_SECURITY": "psk", "RLX_KEY_FILE": "/k"},
        "wire",
        "native",
    ),
    "seconds": ({"RLX_JOIN_TIMEOUT": "2.5"}, "join_timeout", 2.5),
    "own-address": ({**PAIR, "RANK": "1"}, "listen_address", Address("127.0.0.1", 29501)),
    "bind-host": ({**PAIR, "RLX_BIND": "::1"}, "listen_address", Address("::1", 29500)),
    "bind-port": ({**PAIR, "RLX_BIND": "[::]:7"}, "listen_address", Address("::", 7)),
    "worker": ({**PAIR, "RANK": "1", "TOPOLOGY": "star"}, "listen_address", None),
}


@pytest.mark.parametrize(("environ", "field", "value"), ACCEPTED.values(), ids=ACCEPTED)
def test_a_variable_means_what_upstream_means_by_it(
    environ: Dict[str, str], field: str, value: object
) -> None:
    """Each accepted value has the documented effect."""
    assert getattr(Settings.from_env(environ), field) == value


REFUSED: Dict[str, Any] = {
    "rank-word": ({"RANK": "one"}, "RANK", "0..65535"),
    "rank-blank": ({"RANK": " 1"}, "RANK", "integer"),
    "rank-negative": ({"RANK": "-1"}, "RANK", "integer"),
    "rank-huge": ({"RANK": "9" * 40}, "RANK", "integer"),
    "rank-beyond": ({**PAIR, "RANK": "2"}, "RANK", "0..1"),
    "world-0": ({"WORLD": "0"}, "WORLD", "1.."),
    "topology": ({**PAIR, "TOPOLOGY": "ring"}, "TOPOLOGY", "mesh or star"),
    "topology-empty": ({**PAIR, "TOPOLOGY": ""}, "TOPOLOGY", "mesh or star"),
    "dial-out": ({**PAIR, "DIAL_OUT": "yes"}, "DIAL_OUT", "0, 1, true or false"),
    "dial-out-empty": ({**PAIR, "DIAL_OUT": ""}, "DIAL_OUT", "0, 1, true or false"),
    "heap": ({"HEAP_MB": "64M"}, "HEAP_MB", "integer"),
    "disc-port": ({"DISC_PORT": "x"}, "DISC_PORT", "1..65535"),
    "data-port": ({"DATA_PORT": "70000"}, "DATA_PORT", "1..65535"),
    "port-sum": (
        {"DISCOVER": "1", "DATA_PORT": "65535", "RANK": "1", "WORLD": "2"},
        "DATA_PORT",
        r"DATA_PORT \+ RANK",
    ),
    "no-peers": ({"WORLD": "2"}, "PEERS", "DISCOVER"),
    "peers-few": ({"WORLD": "3", "PEERS": TWO}, "PEERS", "3 addresses"),
    "peers-many": ({"PEERS": TWO}, "PEERS", "1 addresses"),
    "peers-portless": ({"WORLD": "2", "PEERS": "a:1,b"}, "PEERS", "lacks a port"),
    "peers-empty": ({"PEERS": ""}, "PEERS", "HOST:PORT"),
    "peers-port-0": ({"PEERS": "a:0"}, "PEERS", "outside 1..65535"),
    "peers-bare-v6": ({"PEERS": "fd00::1:29500"}, "PEERS", r"\[IPV6\]:PORT"),
    "wire": ({"RLX_WIRE": "tcp"}, "RLX_WIRE", "rlx or native"),
    "security": ({"RLX_SECURITY": "tls"}, "RLX_SECURITY", "psk or none"),
    "rlx-psk": ({"RLX_SECURITY": "psk"}, "RLX_SECURITY", "none"),
    "bind": ({**PAIR, "RLX_BIND": "a b"}, "RLX_BIND", "HOST"),
    "join-timeout": ({"RLX_JOIN_TIMEOUT": "0"}, "RLX_JOIN_TIMEOUT", "seconds, over 0"),
    "peer-timeout": ({"RLX_PEER_TIMEOUT": "10s"}, "RLX_PEER_TIMEOUT", "seconds"),
    "spin": ({"RLX_SPIN_US": "-1"}, "RLX_SPIN_US", "integer"),
}


@pytest.mark.parametrize(("environ", "variable", "allowed"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_value_names_its_variable_and_what_is_allowed(
    environ: Dict[str, str], variable: str, allowed: str
) -> None:
    """Nothing is passed over in silence; starting again would not help."""
    with pytest.raises(SettingsError, match=allowed) as caught:
        Settings.from_env(environ)

    assert caught.value.variable == variable
    assert str(caught.value).startswith(variable)
    assert caught.value.exit_code == 78


@pytest.mark.parametrize("bind", [None, "192.0.2.9", "[::]:29500"])
def test_the_rlx_wire_listens_on_the_loopback_only(bind: Optional[str]) -> None:
    """Without authentication, and without a written `none`, no other address is bound."""
    node = Node(0, 2).peers(["192.0.2.7:29500", "192.0.2.8:29500"])

    with pytest.raises(RefusedError, match="RLX_SECURITY=none"):
        (node.bind(bind) if bind else node).connect()


def test_the_builder_says_what_the_environment_says() -> None:
    """Both ways lead to the same settings, and a builder's copies do not share them."""
    base = Node(rank=1, world=2)
    built = base.peers(TWO.split(",")).topology("star").heap_bytes(1 << 20).join_timeout(3)
    read = Node.from_env(
        {**PAIR, "RANK": "1", "TOPOLOGY": "star", "HEAP_MB": "1", "RLX_JOIN_TIMEOUT": "3"}
    )

    assert built.settings == read.settings
    assert base.settings == Settings(rank=1, world=2)


def test_an_address_reads_back_as_it_is_shown() -> None:
    """IPv6 hosts stand in brackets, names and IPv4 do not."""
    for text in ("node-1:29500", "10.0.0.1:1", "[fd00::1]:29500", "[fe80::1%eth0]:5"):
        assert str(parse_address(text)) == text


def test_the_variables_are_known_to_whoever_renders_them() -> None:
    """The list is complete and names nothing twice."""
    assert len(set(VARIABLES)) == len(VARIABLES)
    assert {"RANK", "WORLD", "PEERS", "TOPOLOGY", "HEAP_MB", "RLX_PLAN"} <= set(VARIABLES)
