"""Logs of several ranks of one host: what is lacking of each is told, and none is lost."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlxdeploy.app.logs import Line, Source, Unread, read_all
from rlxdeploy.edge.local import LocalSession
from rlxdeploy.edge.logs import LogQuery
from rlxdeploy.edge.pool import Pool
from rlxdeploy.edge.session import Session
from rlxdeploy.errors import Unreachable
from rlxdeploy.model.host import Host, Tree

HOST = Host("box")


@pytest.fixture
def ended() -> Iterator[threading.Event]:
    """Give what ends with the test."""
    event = threading.Event()
    yield event
    event.set()


def test_each_rank_of_a_host_fails_for_itself(tmp_path: Path, ended: threading.Event) -> None:
    """One that hangs, one that is turned away, one that is read: by host and rank each."""
    tree = Tree("t", str(tmp_path / "share"), str(tmp_path / "run"))
    Path(tree.logs).mkdir(parents=True)
    Path(tree.log_file(2)).write_text("two\n")
    sources = [Source(HOST, LogQuery(tree, "process", rank)) for rank in range(3)]
    turns = iter(range(3))

    def open_session(host: Host, _deadline: float) -> Session:
        number = next(turns)
        if number == 0:
            ended.wait(60)
        if number == 1:
            raise Unreachable(host.name, "connect", "no route to host")
        return LocalSession(host, ("/bin/sh",))

    # One at a time, so that the ranks come in their order.
    read = read_all(sources, open_session, Pool(1, 5.0))

    assert read.lines == (Line(2, "box", "two"),)
    assert [str(one) for one in read.failed] == [
        "rank 0: box: read the log: did not finish by its deadline",
        "rank 1: box: connect: no route to host",
    ]
    assert [type(one) for one in read.failed] == [Unread, Unread]
    assert [type(one.error).__name__ for one in read.failed] == ["HostError", "Unreachable"]
