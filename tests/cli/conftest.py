"""Desks that are cleared whatever happens, and one group that only readers share."""

import os
import pty
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk of the test's own."""
    made = Desk(tmp_path)
    yield made
    made.close()


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal: a person's and a program's."""
    ends = pty.openpty()
    yield ends
    for end in ends:
        os.close(end)


@pytest.fixture(scope="session")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk where two ranks have joined; whoever uses it changes nothing."""
    made = Desk(tmp_path_factory.mktemp("group"))
    try:
        made.pair()
        made.good("apply", "--yes")
        yield made
    finally:
        made.close()
