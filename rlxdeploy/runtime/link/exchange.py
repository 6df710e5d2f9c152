"""The collectives of the rlx wire: upstream's patterns, carried out over any links."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, List, Sequence

import numpy as np

from rlxdeploy.runtime.algorithm import gather, select
from rlxdeploy.runtime.algorithm.arithmetic import SCALED, TYPED
from rlxdeploy.runtime.algorithm.federated import federated_average
from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.moves import Moves, Receive, Scratch, Send
from rlxdeploy.runtime.errors import CollectiveTimeout, NotSupported
from rlxdeploy.runtime.link.base import Call, Links, drive
from rlxdeploy.runtime.link.collectives import Collectives, Inadmissible, Pairs, Turnout
from rlxdeploy.runtime.vocabulary import Dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Exchange(Collectives):
    """Upstream's collectives over *links*."""

    def __init__(self, links: Links) -> None:
        self.links, self.member = links, links.member
        self._scratch = Scratch()

    def send(self, to: int, tag: int, data: memoryview, call: Call) -> None:
        """Send a message; Inadmissible where it is longer than the receiver would take."""
        self._fits(call, len(data))
        self._drive(iter((Send(to, tag, data),)), call)

    def receive(self, source: int, tag: int, into: memoryview, call: Call) -> None:
        """Fill *into* with the next message."""
        self.links.collect((Receive(source, tag, into),), call)

    def take(self, source: int, tag: int, call: Call) -> memoryview:
        """Return the next message."""
        return self.links.take(source, tag, call)

    def barrier(self, call: Call) -> None:
        """Let no rank go on before every rank has come: a byte to rank 0, a byte back."""
        self._drive(gather.barrier(self.member), call)

    def broadcast(self, data: NDArray[Any], root: int, call: Call) -> None:
        """Give every rank the *data* of *root*."""
        self._fits(call, data.nbytes)
        self._drive(gather.broadcast(self.member, data, root), call)

    def all_gather(self, data: NDArray[Any], out: NDArray[Any], call: Call) -> None:
        """Gather at rank 0, which sends the whole to each."""
        self._fits(call, out.nbytes)
        self._drive(gather.all_gather(self.member, data, out), call)

    def all_reduce(
        self, data: NDArray[Any], kind: ReduceKind, dtype: Dtype, call: Call, *, exact: bool
    ) -> None:
        """Reduce around a ring, or through rank 0."""
        what = select.reduction(kind, _known(dtype, call))
        self._fits_in_parts(call, data)
        self._drive(select.all_reduce(self.member, data, what, self._scratch, exact=exact), call)

    def all_reduce_typed(
        self, data: NDArray[Any], kind: ReduceKind, dtype: Dtype, call: Call
    ) -> None:
        """Reduce around a ring, or through rank 0, rounding at every hop."""
        what = select.typed_reduction(kind, _known(dtype, call))
        self._fits_in_parts(call, data)
        self._drive(select.all_reduce(self.member, data, what, self._scratch), call)

    def reduce(
        self, data: NDArray[Any], root: int, kind: ReduceKind, dtype: Dtype, call: Call
    ) -> None:
        """Have the root fold the others' vectors into its own, in ascending order."""
        what = select.reduction(kind, _known(dtype, call))
        self._fits(call, data.nbytes)
        self._drive(select.reduce(self.member, data, root, what, self._scratch), call)

    def reduce_scatter(
        self, data: NDArray[Any], out: NDArray[Any], kind: ReduceKind, dtype: Dtype, call: Call
    ) -> None:
        """Go half the way around the ring, or through rank 0."""
        what = select.reduction(kind, _known(dtype, call))
        self._fits_in_parts(call, data)
        moves = select.reduce_scatter(self.member, data, out, what, self._scratch)
        self._drive(moves, call)

    def all_to_all(self, data: NDArray[Any], out: NDArray[Any], call: Call) -> None:
        """Exchange equal parts, pair by pair or through rank 0."""
        self._fits(call, data.nbytes // self.member.world)
        self._drive(select.all_to_all(self.member, data, out), call)

    def all_to_all_v(self, parts: Sequence[NDArray[Any]], call: Call) -> List[NDArray[Any]]:
        """Exchange counts, then parts, pair by pair or through rank 0."""
        self._fits(call, max(part.nbytes for part in parts))
        got: List[NDArray[Any]] = []
        most = self.links.max_message // max(1, parts[0].dtype.itemsize)
        self._drive(select.all_to_all_v(self.member, parts, got, most), call)
        return got

    def ppermute(self, data: NDArray[Any], out: NDArray[Any], pairs: Pairs, call: Call) -> None:
        """Send along the pairs, directly or through rank 0."""
        self._fits(call, data.nbytes)
        self._drive(select.ppermute(self.member, data, out, pairs), call)

    def federated_average(
        self, data: NDArray[Any], dtype: Dtype, seconds: float, call: Call
    ) -> Turnout:
        """Gather at rank 0 what is there in time; what comes later counts in no round."""
        name = _known(dtype, call)
        if name not in SCALED:
            raise NotSupported(f"{call.op}: {name} has no exact mean; use {', '.join(SCALED)}")
        self._fits(call, data.nbytes)
        present: List[int] = []
        self._drive(federated_average(self.member, data, name, seconds, present), call)
        if self.member.rank:
            return Turnout(0)
        late = tuple(rank for rank in self.member.others if rank not in present)
        return Turnout(len(present), late)

    def put(self, to: int, offset: int, data: memoryview, call: Call) -> None:
        """Store in another rank's heap, which has the size of this one's."""
        self._fits(call, len(data))
        window = self._window(call, offset, len(data))
        if to == self.member.rank:
            window[:] = data
            return
        self.links.put(to, offset, data, call)
        self.links.flush(call)

    def get(self, source: int, offset: int, into: memoryview, call: Call) -> None:
        """Ask for a part of another rank's heap, which has the size of this one's."""
        self._fits(call, len(into))
        window = self._window(call, offset, len(into))
        if source == self.member.rank:
            into[:] = window
        else:
            self.links.get(source, offset, into, call)

    def watch(self, seconds: float) -> None:
        """Let *seconds* pass; raise PeerLost as soon as a rank is lost."""
        self.links.watch(seconds)

    def close(self) -> None:
        """Hand over what was sent, then end all links."""
        self.links.close()

    def abort(self, why: str) -> None:  # noqa: ARG002 - this wire has no words for it
        """End all links at once."""
        self.links.abort()

    def _drive(self, moves: Moves, call: Call) -> None:
        try:
            # What overflows becomes infinite, as in any sum of floats; it is not worth a warning.
            with np.errstate(over="ignore", invalid="ignore"):
                drive(self.links, moves, call)
        except CollectiveTimeout:
            time.sleep(self.links.late_pause_s)
            raise

    def _window(self, call: Call, offset: int, length: int) -> memoryview:
        heap = self.links.heap
        window = heap.window(offset, length) if offset >= 0 else None
        if window is None:
            raise Inadmissible(
                f"{call.op}: {length} bytes at offset {offset} are not in a heap of {heap.size}"
            )
        return window

    def _fits_in_parts(self, call: Call, data: NDArray[Any]) -> None:
        """Check what goes around in as many parts as there are ranks, perhaps as float64."""
        self._fits(call, -(-data.size // self.member.world) * np.float64().nbytes)

    def _fits(self, call: Call, size: int) -> None:
        most = self.links.max_message
        if size > most:
            raise Inadmissible(f"{call.op}: a message of {size} bytes; at most {most} go into one")


def _known(dtype: Dtype, call: Call) -> str:
    """Return the name of *dtype*; NotSupported where the rlx wire does not reduce it."""
    name = dtype.name.lower()
    if name not in TYPED:
        raise NotSupported(
            f"{call.op}: the rlx wire does not reduce {name}; use one of {', '.join(TYPED)}, or "
            "RLX_WIRE=native"
        )
    return name
