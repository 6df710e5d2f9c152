"""Logs of several ranks of one host: what is lacking of each is told, and none is lost."""

import threading
from collections.abc import Iterator

import pytest

from rlxdeploy.app.logs import Logs, Source, Unread, read_all
from rlxdeploy.edge.logs import LogQuery
from rlxdeploy.edge.pool import Pool
from rlxdeploy.edge.session import Session
from rlxdeploy.errors import HostError, Unreachable
from rlxdeploy.model.host import Host, Tree

HOST, TREE = Host("box"), Tree("t", "/var/lib/rlx", "/run/rlx")


@pytest.fixture
def ended() -> Iterator[threading.Event]:
    """Give what ends with the test."""
    event = threading.Event()
    yield event
    event.set()


def test_each_rank_of_a_host_fails_for_itself(ended: threading.Event) -> None:
    """One that hangs and one that is turned away: each by host and rank, with its own class."""
    turns = iter(range(2))

    def open_session(host: Host, _deadline: float) -> Session:
        if next(turns) == 0:
            ended.wait(60)
        raise Unreachable(host.name, "connect", "no route to host")

    sources = [Source(HOST, LogQuery(TREE, "process", rank)) for rank in (0, 1)]
    # One at a time, so that the ranks come in their order.
    read: Logs = read_all(sources, open_session, Pool(1, 1.0))

    assert read.lines == ()
    late, away = read.failed
    assert (late.rank, type(late.error), away.rank, type(away.error)) == (
        *(0, HostError),
        *(1, Unreachable),
    )
    assert str(late) == "rank 0: box: read the log: did not finish by its deadline"
    assert str(away) == "rank 1: box: connect: no route to host"
    assert str(Unread(None, away.error)) == "box: connect: no route to host"
