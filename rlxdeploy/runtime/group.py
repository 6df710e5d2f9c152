"""The group a rank has joined: messages, collectives, and its end.

One thread uses a group.  Calls work in place on numpy arrays of any shape and strides.  Arguments
no group could carry out are a ValueError or TypeError and change nothing.  Any other failure
finishes the group: the links close, the other ranks wake, and later calls raise GroupClosed.
Only a `recv` or `recv_bytes` that times out leaves the group usable.
"""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, Optional, Type, Union, final

import numpy as np

from rlxdeploy.runtime.algorithm import gather
from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.moves import Moves, Receive, Scratch, Send, as_bytes
from rlxdeploy.runtime.algorithm.select import all_reduce
from rlxdeploy.runtime.algorithm.tags import RESERVED_TAGS
from rlxdeploy.runtime.arrays import flatten, write_back
from rlxdeploy.runtime.errors import CollectiveTimeout, GroupClosed, LengthMismatch, NotSupported
from rlxdeploy.runtime.link.base import Call, Links, begin, drive

if TYPE_CHECKING:
    from numpy.typing import NDArray

_REDUCIBLE = ("<f4", "<f8")


@final
class ProcessGroup:
    """All ranks of a job, seen from one of them.

    *timeout* (seconds) bounds every call that names none of its own; *deterministic* is the
    all_reduce mode of calls that choose none; *on_close* is called once, when the group ends.
    """

    def __init__(
        self,
        links: Links,
        *,
        timeout: float = 120.0,
        deterministic: bool = False,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._links, self._member = links, links.member
        self._timeout, self._deterministic, self._on_close = timeout, deterministic, on_close
        self._scratch = Scratch()
        self._to_self: Dict[int, Deque[bytes]] = {}
        self._ended: Optional[str] = None

    @property
    def rank(self) -> int:
        """This rank's number."""
        return self._member.rank

    @property
    def world(self) -> int:
        """How many ranks the group has."""
        return self._member.world

    @property
    def is_leader(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0

    @property
    def fully_linked(self) -> bool:
        """Whether any two ranks can exchange messages; in a star of three only 0 has all links."""
        return not self._member.hub

    def send(self, to: int, tag: int, array: NDArray[Any], timeout: Optional[float] = None) -> None:
        """Send the elements of *array* to rank *to*; returns once its memory may change."""
        self.send_bytes(to, tag, as_bytes(flatten(array)), timeout)

    def recv(
        self, source: int, tag: int, into: NDArray[Any], timeout: Optional[float] = None
    ) -> None:
        """Fill *into* with the next message from *source* with *tag*; it must be of that size."""
        call = self._begin(f"recv from rank {source}", timeout, source, tag)
        flat = flatten(into, result=True)
        if source == self.rank:
            message = self._from_self(tag)
            if len(message) != flat.nbytes:
                raise LengthMismatch(call.op, source, flat.nbytes, len(message))
            as_bytes(flat)[:] = message
        else:
            receive = Receive(source, tag, as_bytes(flat))
            self._guard(call, lambda: self._links.collect((receive,), call), usable_when_late=True)
        write_back(flat, into)

    def send_bytes(
        self,
        to: int,
        tag: int,
        data: Union[bytes, bytearray, memoryview],
        timeout: Optional[float] = None,
    ) -> None:
        """Send *data* to rank *to*; returns once its memory may change."""
        call = self._begin(f"send to rank {to}", timeout, to, tag)
        if to == self.rank:
            self._to_self.setdefault(tag, deque()).append(bytes(data))
            return
        whole = memoryview(data).cast("B")
        self._fits(call.op, len(whole))
        moves = iter((Send(to, tag, whole),))
        self._guard(call, lambda: drive(self._links, moves, call))

    def recv_bytes(self, source: int, tag: int, timeout: Optional[float] = None) -> bytes:
        """Return the next message from *source* with *tag*."""
        call = self._begin(f"recv from rank {source}", timeout, source, tag)
        if source == self.rank:
            return self._from_self(tag)
        message = self._guard(
            call, lambda: self._links.take(source, tag, call), usable_when_late=True
        )
        return bytes(message)

    def barrier(self, timeout: Optional[float] = None) -> None:
        """Wait until every rank has called this."""
        call = self._begin("barrier", timeout, whole=True)
        self._drive(call, gather.barrier(self._member))

    def broadcast(
        self, array: NDArray[Any], root: int = 0, timeout: Optional[float] = None
    ) -> None:
        """Give every rank the *array* of rank *root*, which is the same size everywhere."""
        call = self._begin("broadcast", timeout, root)
        flat = flatten(array, result=self.rank != root)
        self._fits(call.op, flat.nbytes)
        self._drive(call, gather.broadcast(self._member, flat, root))
        if self.rank != root:
            write_back(flat, array)

    def all_gather(
        self,
        array: NDArray[Any],
        out: Optional[NDArray[Any]] = None,
        timeout: Optional[float] = None,
    ) -> NDArray[Any]:
        """Return every rank's *array*, stacked by rank, in *out* if given; sizes are equal."""
        call = self._begin("all_gather", timeout, whole=True)
        flat = flatten(array)
        shape = (self.world, *array.shape)
        result = np.empty(shape, array.dtype) if out is None else out
        if result.shape != shape or result.dtype != array.dtype:
            raise ValueError(f"all_gather: out must be {array.dtype} of shape {shape}")
        whole = flatten(result, result=True)
        self._fits(call.op, whole.nbytes)
        self._drive(call, gather.all_gather(self._member, flat, whole))
        write_back(whole, result)
        return result

    def all_reduce(
        self,
        array: NDArray[Any],
        kind: ReduceKind = ReduceKind.SUM,
        timeout: Optional[float] = None,
        *,
        deterministic: Optional[bool] = None,
    ) -> NDArray[Any]:
        """Reduce *array* (float32 or float64) over all ranks, in place; return it.

        All ranks end with the same bits.  Deterministic mode sums float32 in float64; every rank
        must choose alike.
        """
        call = self._begin("all_reduce", timeout, whole=True)
        flat = flatten(array, result=True)
        if flat.dtype.str not in _REDUCIBLE:
            raise NotSupported(
                f"all_reduce of {array.dtype} is not supported yet; use float32 or 64"
            )
        exact = self._deterministic if deterministic is None else deterministic
        self._fits(call.op, -(-flat.size // self.world) * np.float64().nbytes)
        moves = all_reduce(self._member, flat, ReduceKind(kind), self._scratch, exact=exact)
        self._drive(call, moves)
        write_back(flat, array)
        return array

    def watch(self, seconds: float) -> None:
        """Let *seconds* pass, and raise PeerLost as soon as a rank is lost."""
        call = self._begin("waiting", seconds)
        self._guard(call, lambda: self._links.watch(seconds), abort_on=Exception)

    def close(self) -> None:
        """Leave the group: what was sent still arrives, ranks that wait for this one wake."""
        self._end("it was closed", self._links.close)

    def abort(self) -> None:
        """Leave the group at once; what is under way is thrown away."""
        self._end("it was aborted", self._links.abort)

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abort()

    def _begin(
        self,
        op: str,
        timeout: Optional[float],
        other: int = 0,
        tag: int = 0,
        *,
        whole: bool = False,
    ) -> Call:
        if self._ended is not None:
            raise GroupClosed(f"{op}: the group has ended: {self._ended}")
        if not 0 <= other < self.world:
            raise ValueError(f"{op}: ranks are 0..{self.world - 1}")
        if not 0 <= tag < RESERVED_TAGS:
            raise ValueError(f"{op}: tags are 0..{RESERVED_TAGS - 1:#x}, not {tag:#x}")
        return begin(op, self._timeout if timeout is None else timeout, whole=whole)

    def _fits(self, op: str, size: int) -> None:
        if size > self._links.max_message:
            most = self._links.max_message
            raise ValueError(f"{op}: a message of {size} bytes; at most {most} go into one")

    def _drive(self, call: Call, moves: Moves) -> None:
        self._guard(call, lambda: drive(self._links, moves, call))

    def _guard(
        self,
        call: Call,
        deed: Callable[[], Any],
        *,
        usable_when_late: bool = False,
        abort_on: Type[BaseException] = BaseException,
    ) -> Any:  # noqa: ANN401 - whatever the deed returns
        """Carry out *deed*; if it fails the group ends, unless lateness leaves it usable."""
        try:
            return deed()
        except CollectiveTimeout as error:
            if not usable_when_late:
                self._end(str(error), self._links.abort)
            raise
        except abort_on as error:
            self._end(f"{call.op} failed: {error}", self._links.abort)
            raise

    def _end(self, why: str, how: Callable[[], None]) -> None:
        if self._ended is None:
            self._ended = why
            how()
            self._on_close()

    def _from_self(self, tag: int) -> bytes:
        waiting = self._to_self.get(tag)
        if not waiting:
            raise ValueError(f"this rank has sent itself nothing with tag {tag}")
        return waiting.popleft()
