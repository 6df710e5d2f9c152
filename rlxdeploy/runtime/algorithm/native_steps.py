"""What a rank does in a collective of the native wire, as data.

A schedule is the list of its steps; offsets are bytes.  A Send is only begun: what the kernel does
not take at once goes out while later steps wait.  It is therefore a rule of every schedule that
memory is written over only when what was received proves that the bytes sent from it have
arrived, or after a fence.  Both ends of a link list the same messages in the same order.
"""

from __future__ import annotations

from typing import List, NamedTuple, Sequence, Tuple, Union

# Which memory a step speaks of: the call's result, its input, or memory kept between calls.
RESULT = 0
INPUT = 1
KEPT = 2

# Two chunks fit a core's L2 cache, so that folding reads what receiving has just written.
CHUNK = 512 << 10


class Shape(NamedTuple):
    """What a schedule depends on besides the call; all ranks agree on *crowded*.

    *crowded* says that ranks share cores, *star* that only rank 0 has links to all.
    """

    rank: int
    world: int
    crowded: bool = False
    star: bool = False

    @property
    def others(self) -> Tuple[int, ...]:
        """Every other rank, nearest upwards first, so that no rank is everybody's first."""
        return tuple((self.rank + i) % self.world for i in range(1, self.world))


class Send(NamedTuple):
    """Begin to send memory[start:stop] to rank *to*."""

    to: int
    memory: int
    start: int
    stop: int


class Receive(NamedTuple):
    """Receive memory[start:stop] from rank *source*."""

    source: int
    memory: int
    start: int
    stop: int


class Reduce(NamedTuple):
    """Receive this range from every rank of *sources* and fold all into memory[start:stop].

    *last* says that this makes the result of all ranks, so that a mean is taken now; *fence* that
    the range is also being sent and must be out before it is written.
    """

    sources: Tuple[int, ...]
    memory: int
    start: int
    stop: int
    last: bool = True
    fence: bool = False


class Copy(NamedTuple):
    """Copy source[start:stop] to memory[at:]."""

    source: int
    start: int
    stop: int
    memory: int
    at: int


Step = Union[Send, Receive, Reduce, Copy]
Schedule = List[Step]
Range = Tuple[int, int]


def split(start: int, stop: int, parts: int, unit: int) -> List[Range]:
    """Cut a range of bytes into near-equal parts of whole elements of *unit*, longer ones first."""
    least, more = divmod((stop - start) // unit, parts)
    cuts = [start + unit * (part * least + min(part, more)) for part in range(parts + 1)]
    return list(zip(cuts, cuts[1:]))


def chunks(start: int, stop: int, size: int = CHUNK) -> List[Range]:
    """Cut a range of bytes into chunks of *size*; an empty range is one empty chunk."""
    return [(at, min(at + size, stop)) for at in range(start, stop, size)] or [(start, stop)]


def places(counts: Sequence[int]) -> List[Range]:
    """Return where parts of these sizes lie, one after the other."""
    ends = [0]
    for count in counts:
        ends.append(ends[-1] + count)
    return list(zip(ends, ends[1:]))
