"""The way to a host, against the `ssh -G` of this machine."""

from pathlib import Path

import pytest

from rlxdeploy.edge.ssh.overrides import Overrides
from rlxdeploy.edge.ssh.route import Route, resolve
from rlxdeploy.errors import Unreachable
from rlxdeploy.model.tables import Ssh
from tests.edge.ssh.conftest import soon

Steps = list[tuple[str, str, int]]


def steps(route: Route) -> Steps:
    return [(hop.resolved.user, hop.resolved.hostname, hop.resolved.port) for hop in route]


TARGET = "Host target\n  HostName 10.0.0.5\n  User ml\n  Port 2222\n"
INNER = "Host inner\n  HostName 10.0.0.3\n  User in\n"
GATE = "Host gw\n  HostName 10.0.0.1\n  User jump\n"
CASES: dict[str, tuple[str, str, Steps]] = {
    "an Include": ("Include {folder}/conf.d/*\n", "gpu-a", [("ml", "10.0.0.5", 2222)]),
    "jump none under a rule for all": (
        f"{GATE}  ProxyJump none\n{TARGET}Host *\n  ProxyJump gw\n",
        "gw",
        [("jump", "10.0.0.1", 22)],
    ),
    "a rule for all": (
        f"{GATE}  ProxyJump none\n{TARGET}Host *\n  ProxyJump gw\n",
        "target",
        [("jump", "10.0.0.1", 22), ("ml", "10.0.0.5", 2222)],
    ),
    "a chain of jumps": (
        f"{TARGET}  ProxyJump gw,me@10.0.0.2:2022\n{GATE}",
        "target",
        [("jump", "10.0.0.1", 22), ("me", "10.0.0.2", 2022), ("ml", "10.0.0.5", 2222)],
    ),
    "a jump host's own jump": (
        f"{TARGET}  ProxyJump inner\n{INNER}  ProxyJump gw\n{GATE}",
        "target",
        [("jump", "10.0.0.1", 22), ("in", "10.0.0.3", 22), ("ml", "10.0.0.5", 2222)],
    ),
    "IPv6 hops": (
        "Host target\n  HostName fd00::5\n  User ml\n  ProxyJump me@[fd00::1]:2022\n",
        "target",
        [("me", "fd00::1", 2022), ("ml", "fd00::5", 22)],
    ),
    "Match final": (
        f"{TARGET}Match final host 10.0.0.5\n  Compression yes\n",
        "target",
        [("ml", "10.0.0.5", 2222)],
    ),
    "a user in the alias": (TARGET, "other@target", [("other", "10.0.0.5", 2222)]),
    "a URI": ("", "ssh://ml@10.0.0.9:2022", [("ml", "10.0.0.9", 2022)]),
}


@pytest.mark.parametrize(("config", "alias", "expected"), CASES.values(), ids=CASES.keys())
def test_the_way_is_the_one_that_ssh_takes(
    tmp_path: Path, config: str, alias: str, expected: Steps
) -> None:
    """Hops, users and ports, from the controller outwards."""
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/a").write_text(TARGET.replace("Host target", "Host gpu-a"))
    (tmp_path / "config").write_text(config.replace("{folder}", str(tmp_path)))
    overrides = Overrides(config=str(tmp_path / "config"))

    assert steps(resolve("target", alias, overrides, soon())) == expected


def test_match_sees_what_the_inventory_says(tmp_path: Path) -> None:
    """User, port and identity go into `ssh -G`; jump hosts keep their own."""
    (tmp_path / "config").write_text(
        f"Match user other\n  HostName 10.0.0.6\n{TARGET}  ProxyJump gw\n{GATE}"
    )
    (tmp_path / "lab_key").touch()
    ssh = Ssh(user="other", port=22022, config="config", identity="lab_key", connect_timeout=3)
    overrides = Overrides.of(ssh, tmp_path)
    gate, target = resolve("target", "target", overrides, soon())

    assert steps((gate, target)) == [("jump", "10.0.0.1", 22), ("other", "10.0.0.6", 22022)]
    assert target.resolved.identity_files == (str(tmp_path / "lab_key"),)
    assert str(tmp_path / "lab_key") not in gate.resolved.identity_files
    assert (overrides.patience(60.0), Overrides().patience(60.0)) == (3.0, 60.0)


def test_paths_are_expanded_as_ssh_expands_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens, variables and the account's home; HOME is not asked."""
    monkeypatch.setenv("KEYS", "/keys")
    monkeypatch.setenv("HOME", "/elsewhere")
    (tmp_path / "config").write_text(TARGET)
    (hop,) = resolve("target", "target", Overrides(config=str(tmp_path / "config")), soon())

    assert hop.path("${KEYS}/%r@%h-%n-%p") == Path("/keys/ml@10.0.0.5-target-2222")
    assert hop.path("~/x") == hop.path("%d/x")
    assert "/elsewhere" not in str(hop.path("~/x"))


@pytest.mark.parametrize(
    ("config", "alias", "why"),
    [
        ("", "-oProxyCommand=touch /tmp/x", "would be an option"),
        ("Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n", "a", "jumps through itself"),
        ("Host *\n  ProxyJump a\n", "a", "jumphost loop"),
        ("Port none\n", "a", "Bad port"),
        ("", "a:2222", "ssh://[user@]host:port"),
        ("IdentityFile ${NONE_SUCH}/k\n", "a", "the variable NONE_SUCH, which is not set"),
        ("IdentityFile ~none-such/k\n", "a", "'~none-such/k' names an account that is not there"),
    ],
    ids=[
        *("an option", "a ring of two", "itself", "a bad word", "a port behind a colon"),
        *("a variable that is not set", "an account that is not there"),
    ],
)
def test_what_leads_nowhere_is_refused(tmp_path: Path, config: str, alias: str, why: str) -> None:
    """Before anything is dialled, with ssh's own words where it has some."""
    (tmp_path / "config").write_text(config)
    with pytest.raises(Unreachable) as refused:
        resolve("a", alias, Overrides(config=str(tmp_path / "config")), soon(20))
    assert why in str(refused.value)


@pytest.mark.parametrize(
    "name",
    ["none-such", "x" * 300, "~none-such/key"],
    ids=["no file", "no name of a file", "no account"],
)
def test_an_identity_that_is_not_there_is_said(tmp_path: Path, name: str) -> None:
    """The real ssh would offer other keys instead."""
    overrides = Overrides.of(Ssh(identity=name), tmp_path)
    with pytest.raises(Unreachable, match=f"{name}, which .* names as the identity"):
        resolve("a", "a", overrides, soon())
