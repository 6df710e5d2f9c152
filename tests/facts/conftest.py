"""What several tests of facts are put to."""

import shutil

import pytest

SHELLS = [["/bin/sh"], ["bash", "--posix"], ["busybox", "sh"]]


@pytest.fixture(params=SHELLS, ids=[shell[0] for shell in SHELLS])
def shell(request: pytest.FixtureRequest) -> list[str]:
    """One of the shells that stand behind /bin/sh somewhere."""
    found: list[str] = request.param
    if shutil.which(found[0]) is None:
        pytest.skip(f"there is no {found[0]} here")
    return found
