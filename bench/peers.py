"""The implementations that are measured, behind one face, and the ways ours are used."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path

import numpy as np
from mpi4py import MPI

from bench.beside import Beside
from bench.ours import Deed, Ours, join
from bench.turns import Peer
from rlxdeploy.runtime import Node

# What the thread beside must leave to the collectives, by docs/benchmarks.md.
_INTERVAL_S = 0.0005
# Contenders that need a process of their own kind, and how many ports of each rank.
PORTS = {"ours": 1, "star": 1, "rlx": 1, "gloo": 0, "mpi": 0}


class Gloo:
    """torch.distributed on gloo."""

    def __init__(self, rank: int, world: int, port: int) -> None:
        import torch  # noqa: PLC0415 - loading it is what some runs must not do
        from torch import distributed  # noqa: PLC0415 - likewise

        torch.set_num_threads(1)
        self.torch, self.distributed, self.world = torch, distributed, world
        distributed.init_process_group(
            "gloo",
            init_method=f"tcp://127.0.0.1:{port}",
            rank=rank,
            world_size=world,
            timeout=timedelta(seconds=120),
        )

    def around(self) -> AbstractContextManager[object]:
        """Return what a block of operations happens in."""
        return nullcontext()

    def deed(self, op: str, dtype: str, size: int) -> Deed | None:
        """Return what does the i-th *op*."""
        torch, dist, world = self.torch, self.distributed, self.world
        kinds = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
        kind = kinds.get(dtype, torch.uint8)
        data = torch.zeros(size // kind.itemsize, dtype=kind)
        gathered = torch.zeros(world * data.numel(), dtype=kind)
        share = torch.zeros(-(-data.numel() // world), dtype=kind)
        whole = torch.zeros(share.numel() * world, dtype=kind)
        deeds: dict[str, Deed] = {
            "all_reduce": lambda _: dist.all_reduce(data),
            "broadcast": lambda i: dist.broadcast(data, i % world),
            "all_gather": lambda _: dist.all_gather_single(gathered, data),
            "reduce_scatter": lambda _: dist.reduce_scatter_single(share, whole),
            "barrier": lambda _: dist.barrier(),
        }
        return _tried(deeds[op])


class OpenMpi:
    """Open MPI, over whichever transports mpirun was told."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm

    def around(self) -> AbstractContextManager[object]:
        """Return what a block of operations happens in."""
        return nullcontext()

    def deed(self, op: str, dtype: str, size: int) -> Deed | None:
        """Return what does the i-th *op*; MPI knows no 16-bit floats."""
        comm, world = self.comm, self.comm.Get_size()
        if dtype not in {"f32", ""}:
            return None
        data = np.zeros(size // 4, np.float32)
        gathered = np.zeros((world, data.size), np.float32)
        share = np.zeros(-(-data.size // world), np.float32)
        whole = np.zeros(share.size * world, np.float32)
        deeds: dict[str, Deed] = {
            "all_reduce": lambda _: comm.Allreduce(MPI.IN_PLACE, data),
            "broadcast": lambda i: comm.Bcast(data, i % world),
            "all_gather": lambda _: comm.Allgather(data, gathered),
            "reduce_scatter": lambda _: comm.Reduce_scatter_block(whole, share),
            "barrier": lambda _: comm.Barrier(),
        }
        return deeds[op]


class Peers:
    """The contenders of a run on this rank; *ports* are taken as groups are made."""

    def __init__(self, comm: MPI.Comm, ports: Sequence[int], key: Path) -> None:
        self._comm, self._ports, self._key = comm, list(ports), key

    def make(self, names: Sequence[str]) -> dict[str, Peer]:
        """Return the contenders *names*; those beside a thread share the group of those alone."""
        alone = {name: self._make(name) for name in names if name in PORTS}
        for name in names:
            if name not in PORTS:
                alone[name] = self._beside(name, alone)
        return {name: alone[name] for name in names}

    def _make(self, name: str) -> Peer:
        rank, world = self._comm.Get_rank(), self._comm.Get_size()
        if name == "mpi":
            return OpenMpi(self._comm)
        if name == "gloo":
            return Gloo(rank, world, self._ports.pop())
        peers = [f"127.0.0.1:{self._ports.pop()}" for _ in range(world)]
        ways = {"rlx": {"wire": "rlx"}, "star": {"topology": "star"}}
        return join(Node(rank, world), peers, self._key, **ways.get(name, {}))

    def _beside(self, name: str, alone: dict[str, Peer]) -> Peer:
        group = alone["gloo" if name == "gloo beside" else "ours"]
        return Beside(group, _INTERVAL_S if name == "yielding" else None)


def ports_of(names: Sequence[str], world: int) -> int:
    """Return how many ports the contenders *names* need."""
    return sum(PORTS[name] * world or 1 for name in names if name in PORTS)


def ours_of(peers: dict[str, Peer]) -> Ours:
    """Return a contender of ours."""
    return next(peer for peer in peers.values() if isinstance(peer, Ours))


def _tried(deed: Deed) -> Deed | None:
    """Return *deed* if it works at all."""
    try:
        deed(0)
    except RuntimeError:
        return None
    return deed
