"""The collectives of the native wire, on flat contiguous arrays, in a mesh and in a star.

Arguments are already checked and alike on all ranks, unless the ranks' programs differ: then the
header of the first message says so.  Every call counts, so that a rank which is a call behind is
noticed too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple
from zlib import crc32

import numpy as np

from rlxdeploy.runtime.algorithm.elements import folded_type, wire_type
from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.moves import as_bytes
from rlxdeploy.runtime.algorithm.native_fold import Fold, make_fold
from rlxdeploy.runtime.algorithm.native_select import Plan, plan, plan_routes
from rlxdeploy.runtime.algorithm.native_steps import Shape
from rlxdeploy.runtime.errors import NotSupported, WireError
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.base import Call
from rlxdeploy.runtime.link.channel import Channel
from rlxdeploy.runtime.link.collectives import Pairs, Turnout
from rlxdeploy.runtime.link.correspondence import Correspondence
from rlxdeploy.runtime.link.drive import Job
from rlxdeploy.runtime.link.express import Express, Routine, make_express
from rlxdeploy.runtime.link.heap import Heap
from rlxdeploy.runtime.link.tcp import Patience
from rlxdeploy.runtime.vocabulary import EXACT, Dtype, Kind, Op
from rlxdeploy.runtime.wire.header import WORDS, word

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EMPTY: NDArray[np.uint8] = np.empty(0, np.uint8)


_Prepared = Tuple[ReduceKind, Optional[Express]]
_MOST_PREPARED = 1024
_FLOATS = (Dtype.FLOAT16, Dtype.BFLOAT16, Dtype.FLOAT32, Dtype.FLOAT64)


class _What(NamedTuple):
    """A call as its header says it."""

    op: Op
    dtype: Dtype = Dtype.BYTES
    total: int = 0
    kind: Kind = Kind.NONE
    root: int = 0


class Native(Correspondence):
    """One rank's end of a group on the native wire."""

    def __init__(
        self,
        shape: Shape,
        channels: Mapping[int, Channel],
        limits: Limits,
        patience: Patience,
        heap: Heap,
    ) -> None:
        super().__init__(shape, channels, limits, patience, heap)
        self._kept: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._folds: Dict[Tuple[int, int, bool], Fold] = {}
        self._prepared: Dict[Tuple[np.dtype[Any], Tuple[int, ...]], _Prepared] = {}
        self._sequence = 0

    def express(self, array: NDArray[Any], kind: ReduceKind, seconds: float) -> bool:
        """all_reduce *array* in place, if it is plain, as calls with its like were prepared for."""
        prepared = self._prepared.get((array.dtype, array.shape))
        if prepared is None or prepared[0] is not kind:
            if not isinstance(kind, ReduceKind):
                return False  # type: ignore[unreachable] # not every program is typed
            prepared = self._prepare(array, kind)
        express = prepared[1]
        if express is None or not (express.any_layout or array.flags.c_contiguous):
            return False
        self._sequence += 1
        express.reduce(array, self._sequence, seconds)
        return True

    def barrier(self, call: Call) -> None:
        """Let no rank go on before every rank has come."""
        self._run(_What(Op.BARRIER), plan(self.shape, Op.BARRIER, Dtype.BYTES, 0), (_EMPTY,), call)

    def broadcast(self, data: NDArray[Any], root: int, call: Call) -> None:
        """Give every rank the *data* of *root*."""
        what = _What(Op.BROADCAST, wire_type(data.dtype), data.nbytes, root=root)
        self._run(what, plan(self.shape, what.op, what.dtype, what.total, root), (data,), call)

    def all_gather(self, data: NDArray[Any], out: NDArray[Any], call: Call) -> None:
        """Fill *out* with every rank's *data*, by rank."""
        what = _What(Op.ALL_GATHER, wire_type(data.dtype), data.nbytes)
        self._run(what, plan(self.shape, what.op, what.dtype, what.total), (out, data), call)

    def all_reduce(
        self,
        data: NDArray[Any],
        kind: ReduceKind,
        dtype: Dtype,
        call: Call,
        *,
        exact: bool = False,
    ) -> None:
        """Reduce *data* over all ranks, in place; *exact* rounds a float32 sum only once."""
        mode = EXACT if exact and dtype == Dtype.FLOAT32 else 0
        what = _What(Op.ALL_REDUCE, dtype, data.nbytes, Kind[kind.name], mode)
        self._run(what, plan(self.shape, what.op, dtype, what.total, mode), (data,), call)

    def all_reduce_typed(
        self, data: NDArray[Any], kind: ReduceKind, dtype: Dtype, call: Call
    ) -> None:
        """Reduce *data* over all ranks, in place: typed is what this wire always is."""
        self.all_reduce(data, kind, dtype, call)

    def reduce(
        self, data: NDArray[Any], root: int, kind: ReduceKind, dtype: Dtype, call: Call
    ) -> None:
        """Reduce *data* over all ranks at *root*, in place; the others' stays as it is."""
        what = _What(Op.REDUCE, dtype, data.nbytes, Kind[kind.name], root)
        self._run(what, plan(self.shape, what.op, dtype, what.total, root), (data,), call)

    def reduce_scatter(
        self, data: NDArray[Any], out: NDArray[Any], kind: ReduceKind, dtype: Dtype, call: Call
    ) -> None:
        """Reduce *data* over all ranks; *out* is this rank's share of the near-equal split."""
        what = _What(Op.REDUCE_SCATTER, dtype, data.nbytes, Kind[kind.name])
        self._run(what, plan(self.shape, what.op, dtype, what.total), (out, data), call)

    def all_to_all(self, data: NDArray[Any], out: NDArray[Any], call: Call) -> None:
        """Send the i-th equal part of *data* to rank i; *out* holds what came, by rank."""
        world = self.shape.world
        routes = ((data.nbytes // world,) * world,) * world
        what = _What(Op.ALL_TO_ALL, wire_type(data.dtype), data.nbytes)
        self._run(what, plan_routes(self.shape, what.op, what.total, routes), (out, data), call)

    def all_to_all_v(self, parts: Sequence[NDArray[Any]], call: Call) -> List[NDArray[Any]]:
        """Send parts[i], of any length, to rank i; return what came, by rank."""
        world, rank, dtype = self.shape.world, self.shape.rank, parts[0].dtype
        counts: NDArray[np.uint64] = np.empty(world * world, np.uint64)
        own = np.array([part.nbytes for part in parts], np.uint64)
        what = _What(Op.ALL_TO_ALL_V, wire_type(dtype))
        first = plan(self.shape, Op.ALL_GATHER, Dtype.UINT64, own.nbytes)
        self._run(what, first, (counts, own), call)
        table = counts.reshape(world, world).tolist()
        self._check_counts(table, dtype.itemsize)
        incoming = [row[rank] // dtype.itemsize for row in table]
        out: NDArray[Any] = np.empty(sum(incoming), dtype)
        chosen = plan_routes(self.shape, what.op, 0, tuple(map(tuple, table)))
        self._run(what, chosen, (out, np.concatenate(parts)), call)
        return np.split(out, np.cumsum(incoming)[:-1])

    def ppermute(
        self,
        data: NDArray[Any],
        out: NDArray[Any],
        pairs: Pairs,
        call: Call,
    ) -> None:
        """Send *data* along every (source, destination); *out* stays where none leads here."""
        mark = crc32(repr(pairs).encode())
        what = _What(Op.PPERMUTE, wire_type(data.dtype), data.nbytes, root=mark)
        self._run(what, plan_routes(self.shape, what.op, what.total, pairs), (out, data), call)

    def federated_average(
        self, data: NDArray[Any], dtype: Dtype, seconds: float, call: Call
    ) -> Turnout:
        """Average at rank 0 what is there in time; what comes later counts in no round."""
        if dtype not in _FLOATS:
            raise NotSupported(f"{call.op}: {dtype.name.lower()} has no exact mean; use floats")
        what = _What(Op.AVERAGE, dtype, data.nbytes, Kind.MEAN)
        self._sequence += 1
        first = word(what.op, what.kind, dtype, 0)
        self._vigil.current = (first, self._sequence, what.total)
        head = WORDS.pack(first, self._sequence, what.total, what.total)
        if self.shape.rank:
            self._contribute(data, head, call)
            return Turnout(0)
        came = self._errands.gather(head, data, seconds, call)
        if came:
            parts = [data, *(came[rank] for rank in sorted(came))]
            self._fold(Kind.MEAN, dtype)(data, parts, len(parts))
        self._answer(data, came, head, call)
        late = tuple(rank for rank in self.member.others if rank not in came)
        return Turnout(1 + len(came), late)

    def _contribute(self, data: NDArray[Any], head: bytes, call: Call) -> None:
        """Send a worker's vector and take the average; it may come before the vector is out."""
        leader, answer = self._vigil.channels[0], np.empty_like(data)
        self._driver.post(leader, head, as_bytes(data), call)
        self._driver.inlet.receive(leader, head, as_bytes(answer), call)
        self._driver.flush(call, (leader,))
        data[...] = answer

    def _answer(
        self, data: NDArray[Any], came: Mapping[int, object], head: bytes, call: Call
    ) -> None:
        """Send the average to all, without waiting for those who are late to read it."""
        prompt = []
        for channel in self._vigil.channels.values():
            if channel.rank in came:
                self._driver.post(channel, head, as_bytes(data), call)
                prompt.append(channel)
            else:
                self._driver.entrust(channel, head, data.tobytes(), call)
        self._driver.flush(call, prompt)

    def _run(self, what: _What, chosen: Plan, buffers: Sequence[NDArray[Any]], call: Call) -> None:
        op, dtype, total, kind, root = what
        steps, kept = chosen
        mine = [buffers[0], buffers[-1]]
        if kept:
            if self._kept.size < kept:
                self._kept = np.empty(kept, np.uint8)
            mine.append(self._kept[:kept])
        memory = [as_bytes(buffer) for buffer in mine]
        self._sequence += 1
        first = word(op, kind, dtype, root)
        if kind:
            elements = folded_type(dtype)
            arrays = [buffer.view(np.uint8).view(elements) for buffer in mine]
            fold = self._fold(kind, dtype, exact=op == Op.ALL_REDUCE and root == EXACT)
            ranks = self.shape.world if kind == Kind.MEAN else 0
            job = Job(steps, first, self._sequence, total, memory, arrays, fold, ranks)
        else:
            job = Job(steps, first, self._sequence, total, memory)
        self._driver.run(job, call)

    def _fold(self, kind: int, dtype: int, *, exact: bool = False) -> Fold:
        key = (kind, dtype, exact)
        if key not in self._folds:
            self._folds[key] = make_fold(kind, dtype, exact=exact)
        return self._folds[key]

    def _prepare(self, array: NDArray[Any], kind: ReduceKind) -> _Prepared:
        """Prepare for calls with arrays like this one, of which a program has few."""
        if len(self._prepared) >= _MOST_PREPARED:
            self._prepared.clear()
        prepared = (kind, self._make_express(array, Kind[kind.name]))
        self._prepared[array.dtype, array.shape] = prepared
        return prepared

    def _make_express(self, array: NDArray[Any], kind: Kind) -> Optional[Express]:
        dtype = wire_type(array.dtype)
        if dtype in {Dtype.BYTES, Dtype.BFLOAT16} or not array.dtype.isnative:
            return None
        routine = Routine(
            plan(self.shape, Op.ALL_REDUCE, dtype, array.nbytes).steps,
            word(Op.ALL_REDUCE, kind, dtype, 0),
            self._fold(kind, dtype),
            self.shape.world if kind == Kind.MEAN else 0,
        )
        return make_express(self._driver, routine, self._vigil.channels, array)

    def _check_counts(self, table: Sequence[Sequence[int]], unit: int) -> None:
        for rank, row in enumerate(table):
            if max(row) > self._limits.max_payload or any(count % unit for count in row):
                raise WireError(f"all_to_all_v: rank {rank} announced parts of {row} bytes")
