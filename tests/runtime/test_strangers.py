"""A thousand strangers at the door while a group forms."""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
from pathlib import Path
from typing import Iterator, List

import pytest

from tests.runtime.cluster import dial
from tests.runtime.processes import Fleet

CROWD = 1000
# What a rank may have open: far fewer than there are strangers.
MOST_OPEN = 200


@contextlib.contextmanager
def room_for(count: int) -> Iterator[None]:
    """Let this process have *count* more files open for a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"this user may open {hard} files, and the test needs {wanted}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("wire", ["rlx", "native"])
def test_a_thousand_silent_strangers_and_a_slow_one_do_not_stop_a_group(
    tmp_path: Path, wire: str
) -> None:
    """They cost a bounded number of descriptors, and the group forms while they stay."""
    fleet = Fleet(tmp_path, 3, "star", RLX_WIRE=wire)
    host, _, port = fleet.peers[0].rpartition(":")
    over = threading.Event()

    def dribble() -> None:
        with contextlib.suppress(OSError), dial(host, int(port)) as slow:
            for byte in b"\1\1\0\0\0\0\0\0\0\0\0\0\0" * 9:
                slow.sendall(bytes([byte]))
                if over.wait(1):
                    return

    slow = threading.Thread(target=dribble)
    crowd: List[socket.socket] = []
    with room_for(CROWD), contextlib.closing(fleet):
        root = fleet.start(0)
        resource.prlimit(root.process.pid, resource.RLIMIT_NOFILE, (MOST_OPEN, MOST_OPEN))
        crowd.append(dial(host, int(port)))
        slow.start()
        try:
            crowd += [socket.create_connection((host, int(port)), 10) for _ in range(CROWD - 1)]
            workers = [fleet.start(rank) for rank in (1, 2)]
            assert all(each.ready() for each in (root, *workers))
            still_open = len(list(Path(f"/proc/{root.process.pid}/fd").iterdir()))
            assert still_open < MOST_OPEN / 2
        finally:
            over.set()
            slow.join()
            for each in crowd:
                each.close()
