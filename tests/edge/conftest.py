"""What several tests of carrying out are put to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edge.deployment import SHELLS, Lab


@pytest.fixture(params=list(SHELLS.values()), ids=list(SHELLS))
def lab(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A host that is this machine under each shell, with nothing of the job left at the end."""
    (tmp_path / "runtime").mkdir()
    one = Lab(tmp_path, shell=request.param)
    yield one
    one.carry_out(one.destroy_plan((0, 1)))
