"""The programs of docs/examples, each by its one command, and what they have to find out."""

import re
import shutil
from pathlib import Path

from tests.cli.desk import Desk

EXAMPLES = Path(__file__).resolve().parents[2] / "docs/examples"


def ran(desk: Desk, name: str) -> str:
    """Apply the example at an address of the desk's own; return what its ranks have said."""
    shutil.copytree(EXAMPLES / name, desk.lab, dirs_exist_ok=True)
    inventory = desk.lab / "inventory.toml"
    inventory.write_text(inventory.read_text().replace("127.0.0.1", desk.host))
    desk.good("apply", "--yes")
    finished = desk.good("wait", "--finished", "--json").document
    said = desk.good("logs").out
    assert {rank["exit_status"] for rank in finished["ranks"]} == {0}, said
    desk.good("destroy", "--yes")
    return said


def test_data_parallel_sgd_finds_the_line_on_every_rank(desk: Desk) -> None:
    """Four ranks with data of their own end with the same weights, bit for bit, and right ones."""
    weights = re.findall(r"rank \d \| weights (.*)", ran(desk, "sgd"))

    assert len(weights) == 4
    assert len(set(weights)) == 1
    assert weights[0].startswith("2.00 -3.40 0.50 digest ")


def test_federated_averaging_goes_on_without_the_straggler(desk: Desk) -> None:
    """Whoever is late is named, is left out of that round alone, and ends with all others."""
    said = ran(desk, "federated")
    rounds = re.findall(r"round \d: (\d) took part, late (\(.*\))", said)

    assert rounds == [("3", "()"), ("2", "(2,)")] * 2
    found = sorted(re.findall(r"rank (\d) \| weights (.*)", said))
    assert found == [(str(rank), "1.50 -0.50") for rank in range(3)]


def test_a_pipeline_computes_what_the_whole_network_would(desk: Desk) -> None:
    """Every batch passes through all ranks, and comes back as the network's own result."""
    assert "rank 0 | 8 of 8 batches came through right" in ran(desk, "pipeline")
