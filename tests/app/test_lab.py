"""What bounds the hosts of a run: how they are reached decides how long they are waited for."""

from pathlib import Path, PurePosixPath

import pytest

from rlxdeploy.app.lab import Lab
from rlxdeploy.model.host import Host
from rlxdeploy.model.inventory import Inventory
from rlxdeploy.model.loaded import Loaded

CONFIG = """
Host slow behind
  ConnectTimeout 60
Host behind
  ProxyJump gate
Host gate
  ConnectTimeout 20
Host *
  HostName 127.0.0.1
  UserKnownHostsFile none
"""

# The table `[ssh]`, the hosts, and the seconds: three steps for each hop.
BOUNDS = {
    "nothing is said": ({}, ["plain"], 30.0),
    "ssh_config says more": ({}, ["gate"], 60.0),
    "the slowest host": ({}, ["plain", "slow", "gate"], 180.0),
    "a way of two hops": ({}, ["plain", "behind"], 240.0),
    "the inventory says so": ({"connect_timeout": 5.0}, ["slow"], 15.0),
    "the inventory says so of each hop": ({"connect_timeout": 5.0}, ["behind"], 30.0),
    "nobody is over SSH": ({"connect_timeout": 5.0}, [None], 15.0),
}


@pytest.mark.parametrize(("table", "names", "seconds"), BOUNDS.values(), ids=BOUNDS.keys())
def test_a_host_is_waited_for_as_long_as_its_way_may_take(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: dict[str, float],
    names: list[str | None],
    seconds: float,
) -> None:
    """What ConnectTimeout allows for every hop is allowed for the way, unless `[ssh]` decides."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / "config").write_text(CONFIG)
    inventory = Inventory.model_validate({"ssh": {"config": "config", **table}})
    with Lab() as lab:
        lab.follow(Loaded(PurePosixPath(tmp_path / "inventory.toml"), "", inventory, {}))
        lab.expect(Host(name or "local", name) for name in names)

        assert lab.limits.opening == seconds
