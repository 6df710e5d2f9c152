"""The collectives of the rlx wire: upstream's patterns, carried out over any links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List

import numpy as np

from rlxdeploy.runtime.algorithm import gather
from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.moves import Moves, Receive, Scratch, Send
from rlxdeploy.runtime.algorithm.select import all_reduce
from rlxdeploy.runtime.errors import NotSupported
from rlxdeploy.runtime.link.base import Call, Links, drive
from rlxdeploy.runtime.link.collectives import Collectives, Inadmissible
from rlxdeploy.runtime.wire.header import Dtype

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
        if dtype not in {Dtype.FLOAT32, Dtype.FLOAT64}:
            raise NotSupported(
                f"all_reduce of {data.dtype} is not supported on the rlx wire yet; "
                "use float32 or float64, or RLX_WIRE=native"
            )
        self._fits(call, -(-data.size // self.member.world) * np.float64().nbytes)
        self._drive(all_reduce(self.member, data, kind, self._scratch, exact=exact), call)

    def all_reduce_typed(self, *_: object) -> None:
        """Not carried out yet."""
        raise _unsupported("all_reduce_typed")

    def reduce(self, *_: object) -> None:
        """Not carried out yet."""
        raise _unsupported("reduce")

    def reduce_scatter(self, *_: object) -> None:
        """Not carried out yet."""
        raise _unsupported("reduce_scatter")

    def all_to_all(self, *_: object) -> None:
        """Not carried out yet."""
        raise _unsupported("all_to_all")

    def all_to_all_v(self, *_: object) -> List[NDArray[Any]]:
        """Not carried out yet."""
        raise _unsupported("all_to_all_v")

    def ppermute(self, *_: object) -> None:
        """Not carried out yet."""
        raise _unsupported("ppermute")

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
        drive(self.links, moves, call)

    def _fits(self, call: Call, size: int) -> None:
        most = self.links.max_message
        if size > most:
            raise Inadmissible(f"{call.op}: a message of {size} bytes; at most {most} go into one")


def _unsupported(op: str) -> NotSupported:
    return NotSupported(f"{op} is not supported on the rlx wire yet; use RLX_WIRE=native")
