"""A pipeline: every rank is one layer of a network, and batches pass from rank to rank.

While a rank computes its layer for one batch, the ranks before it are at work on the next ones.
The last rank sends its results to rank 0, which compares them with the whole network's.
"""

from __future__ import annotations

import numpy as np

from rlxdeploy.runtime import Node, ProcessGroup

BATCHES = 8
SHAPE = (16, 32)
FORWARD, RESULT = 1, 2


def layer(rank: int, batch: np.ndarray) -> np.ndarray:
    """Return what *rank*'s layer makes of a batch."""
    weights = np.random.default_rng(rank).normal(size=(SHAPE[1], SHAPE[1])).astype(np.float32)
    return np.tanh(batch @ weights / np.sqrt(np.float32(SHAPE[1])))


def pass_on(group: ProcessGroup, batches: list[np.ndarray]) -> None:
    """Be this rank's stage for all *batches*, which only rank 0 has from the start."""
    for batch in batches:
        if group.rank:
            group.recv(group.rank - 1, FORWARD, batch)
        done = layer(group.rank, batch)
        last = group.rank == group.world - 1
        group.send(0 if last else group.rank + 1, RESULT if last else FORWARD, done)


def main() -> None:
    """Be one stage; rank 0 checks what comes out at the end."""
    with Node.from_env().connect() as group:
        draw = np.random.default_rng(99)
        batches = [draw.normal(size=SHAPE).astype(np.float32) for _ in range(BATCHES)]
        pass_on(group, [batch.copy() for batch in batches])
        if group.is_leader:
            right = 0
            for batch in batches:
                result = np.empty(SHAPE, dtype=np.float32)
                group.recv(group.world - 1, RESULT, result)
                for rank in range(group.world):
                    batch = layer(rank, batch)  # noqa: PLW2901 - the next layer's input
                right += bool(np.allclose(result, batch, atol=1e-6))
            print(f"{right} of {BATCHES} batches came through right", flush=True)
        # Nobody leaves before all are done.
        group.barrier()


if __name__ == "__main__":
    main()
