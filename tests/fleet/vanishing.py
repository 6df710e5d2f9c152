"""What a rank does on a host of `test_vanished`: `python3 vanishing.py DEED MARK`.

It makes the file MARK once the group works, and prints whom it lost, or `done`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from rlxdeploy.runtime import Node, PeerLost, ProcessGroup

VICTIM = 1
PEER_TIMEOUT_S = float(os.environ.get("RLX_PEER_TIMEOUT", "10"))
SILENT_S = 2.5 * PEER_TIMEOUT_S


def reduce_on(group: ProcessGroup) -> None:
    """Have data under way to every rank all the time."""
    while True:
        group.all_reduce(np.ones(1 << 18, np.float32))


def idle(group: ProcessGroup) -> None:
    """Have nothing under way at all."""
    group.watch(60 * PEER_TIMEOUT_S)


def compute(group: ProcessGroup) -> None:
    """Let the victim come late to a collective since it computes."""
    end = time.monotonic() + SILENT_S
    while group.rank == VICTIM and time.monotonic() < end:
        pass
    group.all_reduce(np.ones(1 << 22, np.float32))


def stopped(group: ProcessGroup) -> None:
    """Let the victim come late to a collective since it is stopped."""
    if group.rank == VICTIM:
        go_on = f"sleep {SILENT_S}; kill -CONT {os.getpid()}"
        with subprocess.Popen(["sh", "-c", go_on]):
            os.kill(os.getpid(), signal.SIGSTOP)
    group.all_reduce(np.ones(1 << 22, np.float32))


def main(deed: str, mark: str) -> None:
    """Join, say so, and do the deed."""
    group = Node.from_env().connect()
    group.barrier()
    Path(mark).touch()
    try:
        DEEDS[deed](group)
    except PeerLost as lost:
        sys.stdout.write(str(lost.rank))
    else:
        sys.stdout.write("done")
        group.barrier()
        group.close()


DEEDS = {each.__name__: each for each in (reduce_on, idle, compute, stopped)}

if __name__ == "__main__":
    main(*sys.argv[1:])
