"""A thousand strangers at the door while a group forms."""

from __future__ import annotations

import contextlib
import re
import resource
import signal
import socket
import threading
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest

from rlxdeploy.runtime.wire.frame import hello
from rlxdeploy.runtime.wire.handshake import Handshake
from rlxdeploy.runtime.wire.identity import Identity
from tests.runtime.cluster import dial
from tests.runtime.native.joining import new_key
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


def dribble(host: str, port: int, said: bytes, over: threading.Event) -> None:
    """Say *said*, a byte a second, and come again where that is not listened to."""
    while not over.is_set():
        with contextlib.suppress(OSError), socket.create_connection((host, port), 10) as slow:
            for byte in said:
                slow.sendall(bytes([byte]))
                if over.wait(1):
                    return
        over.wait(1)


MISSED = Identity("", "", 3, 1, "a" * 32, "psk")
# What the slow one says is what a rank says, and so no reason to show it out.
WIRES: Dict[str, Tuple[Dict[str, str], bytes]] = {
    "rlx": ({}, hello(1)),
    "native with a key": (
        {"RLX_WIRE": "native", "RLX_SECURITY": "psk"},
        Handshake(MISSED, bytes(32), bytes(32), dialled=0).opening,
    ),
}


@pytest.mark.parametrize(("wire", "said"), WIRES.values(), ids=WIRES)
def test_a_thousand_silent_strangers_and_a_slow_one_do_not_stop_a_group(
    tmp_path: Path, wire: Dict[str, str], said: bytes
) -> None:
    """They cost a bounded number of descriptors, are counted, and the group forms among them."""
    fleet = Fleet(tmp_path, 3, "star", **wire, RLX_KEY_FILE=str(new_key(tmp_path / "key")))
    host, _, text = fleet.peers[0].rpartition(":")
    port, over = int(text), threading.Event()
    slow = threading.Thread(target=dribble, args=(host, port, said, over))
    crowd: List[socket.socket] = []
    with room_for(CROWD), contextlib.closing(fleet):
        root = fleet.start(0)
        resource.prlimit(root.process.pid, resource.RLIMIT_NOFILE, (MOST_OPEN, MOST_OPEN))
        crowd.append(dial(host, port))
        slow.start()
        try:
            crowd += [socket.create_connection((host, port), 10) for _ in range(CROWD - 1)]
            workers = [fleet.start(rank) for rank in (1, 2)]
            assert all(each.ready() for each in (root, *workers))
            still_open = len(list(Path(f"/proc/{root.process.pid}/fd").iterdir()))
            assert still_open < MOST_OPEN / 2
        finally:
            over.set()
            slow.join()
            for each in crowd:
                each.close()
        root.signal(signal.SIGTERM)
        (told,) = re.findall("turned away while the group formed: .*", root.end().err)
        assert sum(map(int, re.findall(r"(\d+) times, last from", told))) > CROWD / 2
