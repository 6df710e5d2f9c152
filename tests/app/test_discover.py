"""What a search says that could not even begin."""

from pathlib import Path

import pytest

from rlxdeploy.app.discover import discover
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.say import nobody
from rlxdeploy.app.validate import load
from rlxdeploy.errors import Severity

ADVICE = {
    "nobody is listed": ("", "list the machines in ssh_hosts"),
    "some are listed": ('ssh_hosts = ["gpu-a"]', "those in ssh_hosts are asked all the same"),
}


@pytest.mark.parametrize(("listed", "remedy"), ADVICE.values(), ids=ADVICE.keys())
def test_an_empty_search_by_mdns_advises_what_is_left_to_do(
    tmp_path: Path, listed: str, remedy: str
) -> None:
    """To list machines where none is listed; where some are, that they are asked nevertheless."""
    inventory = tmp_path / "inventory.toml"
    inventory.write_text(f'[network]\ninterface = "absent0"\n[discover]\nmdns = true\n{listed}\n')

    with Lab() as lab:
        found = discover(load(inventory), lab, nobody)

    (notice,) = found.notices
    assert notice.severity is Severity.WARNING
    assert "no interface absent0 is up here, so nobody was asked by mDNS" in notice.message
    assert notice.remedy == remedy
    assert [one.ssh for one in found.found] == (["gpu-a"] if listed else [])
