"""One rank of a soak: random calls, each result checked, and what was kept at the end.

`python -m tests.runtime.soak SEED CALLS MOST_BYTES`, with a rank's environment.  All ranks draw the
same calls from SEED.  Numbers are so small that every dtype holds every sum.
"""

from __future__ import annotations

import gc
import json
import os
import random
import sys
import time
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, NamedTuple, Optional

import numpy as np

from rlxdeploy.runtime.algorithm import bfloat16
from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.ring import split
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.node import Node

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PERIOD = 13
_FLOATS = ("<f2", "bf16", "<f4", "<f8")
# What each wire reduces; any dtype is moved, so the narrow ones do for that.
_DTYPES = {
    "rlx": (*_FLOATS, "i1", "u1"),
    "native": (*_FLOATS, "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8"),
}
# Longer than any call may take: who takes part in an average is no matter of chance here.
_NO_HURRY_S = 600.0
_PAGE = 4096


class Call(NamedTuple):
    """One call, alike on all ranks."""

    op: str
    size: int
    dtype: str
    kind: ReduceKind
    root: int

    @property
    def unit(self) -> int:
        """The bytes of an element."""
        return 2 if self.written else np.dtype(self.dtype).itemsize

    def of(self, dtype: str) -> Call:
        """Return the call with as many bytes of another dtype."""
        other = self._replace(dtype=dtype)
        return other._replace(size=self.size * self.unit // other.unit)

    @property
    def written(self) -> Optional[str]:
        return "bf16" if self.dtype == "bf16" else None


def draw(chance: random.Random, world: int, most: int, wire: str) -> Call:
    """Return a random call on up to *most* bytes, as likely from 1 to 2 as from half to all."""
    dtype = chance.choice(_DTYPES[wire])
    unit = 2 if dtype == "bf16" else np.dtype(dtype).itemsize
    size = int(2 ** chance.uniform(0, np.log2(most))) if chance.random() < 0.95 else 0
    op, kind = chance.choice(sorted(OPS)), chance.choice(list(ReduceKind))
    return Call(op, size // unit, dtype, kind, chance.randrange(world))


def numbers(call: Call, rank: int, size: Optional[int] = None) -> NDArray[Any]:
    """Return what *rank* brings: 0 to 12, again and again, plus its rank."""
    return repeated(call, np.arange(_PERIOD) + rank, call.size if size is None else size)


def repeated(call: Call, period: NDArray[Any], size: int) -> NDArray[Any]:
    """Return *size* elements of the call's dtype that say *period* again and again."""
    if call.written:
        row: NDArray[Any] = bfloat16.narrow(period.astype(np.float32))
    else:
        row = period.astype(call.dtype)
    return np.tile(row, -(-size // _PERIOD))[:size]


def total(call: Call, world: int) -> NDArray[Any]:
    """Return the reduction of all ranks' numbers."""
    row = np.arange(_PERIOD)
    # Halves are exact in every float, and rounded up in every integer.
    middle = (world - 1) / 2 if call.dtype in _FLOATS else world // 2
    whole: NDArray[Any] = {
        ReduceKind.SUM: row * world + world * (world - 1) // 2,
        ReduceKind.MEAN: row + middle,
        ReduceKind.MAX: row + world - 1,
        ReduceKind.MIN: row,
    }[call.kind]
    return repeated(call, whole, call.size)


def same(call: Call, got: NDArray[Any], expected: NDArray[Any]) -> None:
    if not np.array_equal(got, expected):
        raise AssertionError(f"{call}: wrong result")


def _barrier(group: ProcessGroup, _call: Call) -> None:
    group.barrier()


def _broadcast(group: ProcessGroup, call: Call) -> None:
    array = numbers(call, group.rank)
    group.broadcast(array, call.root)
    same(call, array, numbers(call, call.root))


def _all_gather(group: ProcessGroup, call: Call) -> None:
    part = call.size // group.world
    got = group.all_gather(numbers(call, group.rank, part))
    for rank, row in enumerate(got):
        same(call, row, numbers(call, rank, part))


def _all_reduce(group: ProcessGroup, call: Call) -> None:
    array = group.all_reduce(numbers(call, group.rank), call.kind, dtype=call.written)
    same(call, array, total(call, group.world))


def _typed(group: ProcessGroup, call: Call) -> None:
    array = group.all_reduce_typed(numbers(call, group.rank), call.kind, dtype=call.written)
    same(call, array, total(call, group.world))


def _exact(group: ProcessGroup, call: Call) -> None:
    call = call.of("<f4")
    array = group.all_reduce(numbers(call, group.rank), call.kind, deterministic=True)
    same(call, array, total(call, group.world))


def _reduce(group: ProcessGroup, call: Call) -> None:
    own = numbers(call, group.rank)
    array = group.reduce(own.copy(), call.root, call.kind, dtype=call.written)
    same(call, array, total(call, group.world) if group.rank == call.root else own)


def _reduce_scatter(group: ProcessGroup, call: Call) -> None:
    part = group.reduce_scatter(numbers(call, group.rank), call.kind, dtype=call.written)
    same(call, part, total(call, group.world)[split(call.size, group.world)[group.rank]])


def _all_to_all(group: ProcessGroup, call: Call) -> None:
    part = call.size // group.world
    rows = np.stack([numbers(call, group.rank + to, part) for to in range(group.world)])
    for source, row in enumerate(group.all_to_all(rows)):
        same(call, row, numbers(call, source + group.rank, part))


def _all_to_all_v(group: ProcessGroup, call: Call) -> None:
    def length(source: int, to: int) -> int:
        return call.size // group.world // (1 + (source + 2 * to) % 4)

    parts = [numbers(call, group.rank, length(group.rank, to)) for to in range(group.world)]
    for source, row in enumerate(group.all_to_all_v(parts)):
        same(call, row, numbers(call, source, length(source, group.rank)))


def _ppermute(group: ProcessGroup, call: Call) -> None:
    shift = 1 + call.root
    pairs = [(rank, (rank + shift) % group.world) for rank in range(group.world)]
    got = group.ppermute(numbers(call, group.rank), pairs)
    same(call, got, numbers(call, (group.rank - shift) % group.world))


def _send(group: ProcessGroup, call: Call) -> None:
    """Let rank 0 send to every other, and get it back."""
    array = numbers(call, 0)
    if group.rank:
        group.recv(0, 5, array)
        group.send(0, 6, array)
        return
    for rank in range(1, group.world):
        group.send(rank, 5, array)
    for rank in range(1, group.world):
        back = np.zeros_like(array)
        group.recv(rank, 6, back)
        same(call, back, array)


def _average(group: ProcessGroup, call: Call) -> None:
    """Average with nobody late; integers have no mean there."""
    call = (call if call.dtype in _FLOATS else call.of("<f4"))._replace(kind=ReduceKind.MEAN)
    array = numbers(call, group.rank)
    turnout = group.federated_average(array, _NO_HURRY_S, dtype=call.written)
    if turnout != (0 if group.rank else group.world, ()):
        raise AssertionError(f"{call}: {turnout}")
    same(call, array, total(call, group.world))


def _put_and_get(group: ProcessGroup, call: Call) -> None:
    """Let the root put into others' heaps and get it back, which they serve while they wait."""
    array = numbers(call, group.rank)
    if group.rank == call.root:
        others = [0] if group.rank else range(1, group.world)
        for rank in others:
            group.put(rank, call.root, array)
        for rank in others:
            found = group.get(rank, call.root, array.nbytes)
            same(call, np.frombuffer(found, array.dtype), array)
    group.barrier()


OPS: Dict[str, Callable[[ProcessGroup, Call], None]] = {
    "barrier": _barrier,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "all_reduce": _all_reduce,
    "all_reduce_typed": _typed,
    "all_reduce_exact": _exact,
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "all_to_all_v": _all_to_all_v,
    "ppermute": _ppermute,
    "send": _send,
    "federated_average": _average,
    "put_and_get": _put_and_get,
}


class Held(NamedTuple):
    """What a process keeps: bytes of memory, and descriptors."""

    memory: int
    descriptors: int


def held() -> Held:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return Held(pages * _PAGE, len(list(Path("/proc/self/fd").iterdir())))


def main(seed: int, calls: int, most: int) -> None:
    """Make the biggest call of every kind, then *calls* random ones.

    Prints what grew since, and how many seconds the calls took.
    """
    wire = os.environ["RLX_WIRE"]
    chance = random.Random(seed)  # noqa: S311 - a test's dice, and the same ones on every rank
    with Node.from_env().connect() as group:
        for op, dtype, root in product(sorted(OPS), ("<f8", "bf16"), (0, group.world - 1)):
            OPS[op](group, Call(op, most // 8, dtype, ReduceKind.SUM, root))
        before, start = held(), time.monotonic()
        for _ in range(calls):
            call = draw(chance, group.world, most, wire)
            OPS[call.op](group, call)
        seconds = time.monotonic() - start
        after = held()
    grown = {
        "seconds": seconds,
        "memory": after.memory - before.memory,
        "descriptors": after.descriptors - before.descriptors,
    }
    sys.stdout.write(json.dumps(grown))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
