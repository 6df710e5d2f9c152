"""The programs of docs/examples on this machine, each by its one command."""

import shutil

import pytest

from tests import examples
from tests.cli.desk import Desk

WORLDS = {"sgd": 4, "federated": 3, "pipeline": 3}


@pytest.mark.parametrize("name", WORLDS)
def test_an_example_finds_out_what_it_should(desk: Desk, name: str) -> None:
    """Applied as it is, at an address of the desk's own, all its ranks finish with the result."""
    shutil.copytree(examples.FOLDER / name, desk.lab, dirs_exist_ok=True)
    inventory = desk.lab / "inventory.toml"
    inventory.write_text(inventory.read_text().replace("127.0.0.1", desk.host))
    desk.good("apply", "--yes")
    finished = desk.good("wait", "--finished", "--json").document
    said = desk.good("logs").out

    assert [rank["exit_status"] for rank in finished["ranks"]] == [0] * WORLDS[name], said
    examples.DEMANDS[name](said, WORLDS[name])
    desk.good("destroy", "--yes")
