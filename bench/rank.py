"""One rank of a run: `mpirun … python -m bench.rank TASK ANSWER`."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

from mpi4py import MPI

from bench.limit import raw_limit
from bench.ours import Ours
from bench.peers import Peers, ours_of, ports_of
from bench.turns import measure


def main(task: Path, answer: Path) -> None:
    """Measure the task's cases with its peers; rank 0 writes the answer."""
    names, cases, rounds = json.loads(task.read_text())
    comm = MPI.COMM_WORLD
    wanted = ports_of(names, comm.Get_size())
    ports = comm.bcast(_free_ports(wanted) if comm.Get_rank() == 0 else None)
    load = os.getloadavg()[0]
    peers = Peers(comm, ports, task.with_name("key")).make(names)
    ours = ours_of(peers)
    limit = {**raw_limit(ours.group), "load": load}
    meeting = OverMpi(comm, ours)
    timings = measure(peers, cases, rounds, meeting)
    if comm.Get_rank() == 0:
        answer.write_text(json.dumps({"timings": timings, "limit": limit}))
    comm.Barrier()
    for peer in peers.values():
        if isinstance(peer, Ours):
            peer.group.close()


class OverMpi:
    """Lets the ranks begin together and agree."""

    def __init__(self, comm: MPI.Comm, ours: Ours) -> None:
        self._comm, self._ours = comm, ours

    def meet(self) -> None:
        """Wait for all, with nobody left spinning in MPI's barrier."""
        self._comm.Barrier()
        self._ours.group.barrier()

    def agree(self, number: int) -> int:
        """Return rank 0's *number*."""
        return int(self._comm.bcast(number))

    def after(self, name: str) -> None:
        """Let MPI finish a block of its own: it moves data only while somebody is in a call."""
        if name == "mpi":
            self._comm.Barrier()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
