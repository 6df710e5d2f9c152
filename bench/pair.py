"""One rank of two on hosts of their own: `python -m bench.pair RANK KEY <TASK`.

Nothing but Python and numpy is needed, so the wires are compared with one another alone.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

from bench.limit import raw_limit
from bench.ours import Ours, join
from bench.turns import measure
from rlxdeploy.runtime import Node

_PORTS = {"ours": 29500, "rlx": 29600}


def main(rank: int, key: Path) -> None:
    """Measure the cases of the task on standard input; rank 0 prints the answer.

    The task names the contenders, `ours` among them, and the address of each rank.
    """
    names, addresses, cases, rounds = json.load(sys.stdin)
    load = os.getloadavg()[0]
    peers = {
        name: join(
            Node(rank, len(addresses)),
            [f"{address}:{_PORTS[name]}" for address in addresses],
            key,
            wire="rlx" if name == "rlx" else "native",
        )
        for name in names
    }
    meeting = Alone(peers["ours"])
    limit = {**raw_limit(peers["ours"].group, addresses[0]), "load": load}
    timings = measure(peers, cases, rounds, meeting)
    if rank == 0:
        json.dump({"timings": timings, "limit": limit}, sys.stdout)
    for peer in peers.values():
        peer.group.barrier()
        peer.group.close()


class Alone:
    """Lets the ranks begin together and agree, by the group itself."""

    def __init__(self, ours: Ours) -> None:
        self._group = ours.group

    def meet(self) -> None:
        """Wait for all."""
        self._group.barrier()

    def agree(self, number: int) -> int:
        """Return rank 0's *number*."""
        agreed = np.array([number])
        self._group.broadcast(agreed)
        return int(agreed[0])

    def after(self, name: str) -> None:
        """Leave nothing to be done."""


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
