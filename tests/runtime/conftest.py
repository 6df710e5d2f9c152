"""Groups that many claims are put to: every kind of links, for 1 to 8 ranks."""

from typing import Iterator, Sequence

import pytest

from tests.runtime.cluster import KINDS, Cluster, Kind, start


def worlds(kind: Kind) -> Sequence[int]:
    """Return for how many ranks *kind* is tried."""
    # IPv6 differs in how a connection is made, not in what goes over it.
    if kind.host == "::1":
        return (3,)
    return range(1, 9)


@pytest.fixture(
    scope="module",
    params=[(kind, world) for kind in KINDS for world in worlds(kind)],
    ids=lambda param: f"{param[0].name}-{param[1]}",
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Yield a group that has joined; the next test of the module gets the same one."""
    kind, world = request.param
    whole = start(kind, world)
    yield whole
    whole.close()
