"""The programs of docs/examples, and what their ranks have to find out wherever they run."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs/examples"


def sgd(said: str, world: int) -> None:
    """Demand that all ranks have ended with the same weights, bit for bit, and right ones."""
    weights = re.findall(r"^rank \d \|.*\bweights (.*)", said, re.MULTILINE)

    assert len(weights) == world, said
    assert len(set(weights)) == 1, said
    assert weights[0].startswith("2.00 -3.40 0.50 digest ")


def federated(said: str, world: int) -> None:
    """Demand that the last rank is left out of every second round alone, and ends as all do."""
    rounds = re.findall(r"round \d: (\d) took part, late (\(.*\))", said)
    found = re.findall(r"^rank (\d) \|.*\bweights (.*)", said, re.MULTILINE)

    assert rounds == [(str(world), "()"), (str(world - 1), f"({world - 1},)")] * 2, said
    assert sorted(found) == [(str(rank), "1.50 -0.50") for rank in range(world)], said


def pipeline(said: str, _world: int) -> None:
    """Demand that what came back to rank 0 is what the whole network would compute."""
    assert re.search(r"^rank 0 \|.*\b8 of 8 batches came through right", said, re.MULTILINE), said


DEMANDS: Mapping[str, Callable[[str, int], None]] = {
    "sgd": sgd,
    "federated": federated,
    "pipeline": pipeline,
}
