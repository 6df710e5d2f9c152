"""One rank of a run: `mpirun … python -m bench.rank TASK ANSWER`."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpi4py import MPI

from bench.limit import raw_limit
from bench.peers import Deed, Ours, make

# A block is this long, so that a round of all peers is short against what disturbs the machine.
_BLOCK_S = 0.04
_MOST, _LEAST = 2000, 3


def main(task: Path, answer: Path) -> None:
    """Measure the task's cases with its peers; rank 0 writes the answer."""
    names, cases, rounds = json.loads(task.read_text())
    comm = MPI.COMM_WORLD
    ports = comm.bcast(_free_ports(comm.Get_size() + 1) if comm.Get_rank() == 0 else None)
    load = os.getloadavg()[0]
    peers = {name: make(name, comm, ports) for name in names}
    ours = peers["ours"]
    limit = {**raw_limit(ours.group), "load": load}
    timings = [[case, _measure(peers, case, rounds, comm)] for case in cases]
    if comm.Get_rank() == 0:
        answer.write_text(json.dumps({"timings": timings, "limit": limit}))
    comm.Barrier()
    ours.group.close()


def _measure(
    peers: dict[str, Any], case: Sequence[Any], rounds: int, comm: MPI.Comm
) -> dict[str, list[float]]:
    """Return, for each peer, the seconds one operation took in each round."""
    op, dtype, size = case
    deeds = {name: peer.deed(op, dtype, size) for name, peer in peers.items()}
    able = {name: deed for name, deed in deeds.items() if deed is not None}
    counts = {name: _count(deed, comm) for name, deed in able.items()}
    seconds: dict[str, list[float]] = {name: [] for name in peers}
    order = list(able)
    for turn in range(rounds):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            _meet(peers["ours"], comm)
            seconds[name].append(_block(able[name], counts[name]))
            if name == "mpi":
                comm.Barrier()
    return seconds


def _block(deed: Deed, count: int) -> float:
    deed(0)
    start = time.perf_counter()
    for i in range(count):
        deed(i)
    return (time.perf_counter() - start) / count


def _count(deed: Deed, comm: MPI.Comm) -> int:
    """Return how many operations fill a block, the same on every rank."""
    for i in range(_LEAST):
        deed(i)
    took = _block(deed, _LEAST)
    count = max(_LEAST, min(_MOST, int(_BLOCK_S / took)))
    return int(comm.bcast(count))


def _meet(ours: Ours, comm: MPI.Comm) -> None:
    """Let all ranks begin together, with nobody left spinning in another's barrier."""
    comm.Barrier()
    ours.group.barrier()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
