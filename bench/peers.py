"""The three implementations that are measured, behind one face."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol

import numpy as np
from mpi4py import MPI

from rlxdeploy.runtime import Node

# Elements of the arrays, by the name of the case's dtype; bfloat16 is kept as uint16 by numpy.
NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "": np.uint8}

Deed = Callable[[int], object]


class Peer(Protocol):
    """One implementation, on one rank."""

    def deed(self, op: str, dtype: str, size: int) -> Deed | None:
        """Return what does the i-th *op* on arrays of *size* bytes; None where it cannot."""


class Ours:
    """The native wire of this project."""

    def __init__(self, rank: int, world: int, ports: list[int]) -> None:
        peers = [f"127.0.0.1:{port}" for port in ports]
        self.group = Node(rank, world).wire("native").peers(peers).connect()

    def deed(self, op: str, dtype: str, size: int) -> Deed | None:
        """Return what does the i-th *op*."""
        group, world = self.group, self.group.world
        data = np.zeros(size // np.dtype(NUMPY[dtype]).itemsize, NUMPY[dtype])
        named = {"dtype": "bf16"} if dtype == "bf16" else {}
        gathered = np.zeros((world, data.size), data.dtype)
        deeds: dict[str, Deed] = {
            "all_reduce": lambda _: group.all_reduce(data, **named),
            "broadcast": lambda i: group.broadcast(data, i % world),
            "all_gather": lambda _: group.all_gather(data, gathered),
            "reduce_scatter": lambda _: group.reduce_scatter(data),
            "barrier": lambda _: group.barrier(),
        }
        return deeds[op]


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


def make(name: str, comm: MPI.Comm, ports: list[int]) -> Any:  # noqa: ANN401 - any of the peers
    """Return the implementation *name*; the last of *ports* is for gloo's store."""
    rank, world = comm.Get_rank(), comm.Get_size()
    if name == "ours":
        return Ours(rank, world, ports[:world])
    if name == "gloo":
        return Gloo(rank, world, ports[world])
    return OpenMpi(comm)


def _tried(deed: Deed) -> Deed | None:
    """Return *deed* if it works at all."""
    try:
        deed(0)
    except RuntimeError:
        return None
    return deed
