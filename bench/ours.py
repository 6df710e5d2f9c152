"""Our own groups as a benchmark uses them; needs numpy and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np

from rlxdeploy.runtime import Node, ProcessGroup

# Elements of the arrays, by the name of the case's dtype; bfloat16 is kept as uint16 by numpy.
NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "": np.uint8}

Deed = Callable[[int], object]


class Ours:
    """A group of this project."""

    def __init__(self, group: ProcessGroup) -> None:
        self.group = group

    def around(self) -> AbstractContextManager[object]:
        """Return what a block of operations happens in."""
        return nullcontext()

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


def join(
    node: Node, peers: Sequence[str], key: Path, *, wire: str = "native", topology: str = "mesh"
) -> Ours:
    """Join as *node*; the native wire with a key, as a deployed job does, the other without."""
    node = node.wire(wire).peers(peers).topology(topology)
    secured = node.security("none") if wire == "rlx" else node.security("psk").key_file(str(key))
    return Ours(secured.connect())
