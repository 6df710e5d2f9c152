"""What a group may ask of a wire, whichever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, List, NamedTuple, Sequence, Tuple

from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.moves import Member
from rlxdeploy.runtime.link.base import Call
from rlxdeploy.runtime.vocabulary import Dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

Pairs = Tuple[Tuple[int, int], ...]


class Turnout(NamedTuple):
    """How many ranks took part, and which were left out: both are known to rank 0 alone.

    Elsewhere *present* is 0 and *left_out* empty.
    """

    present: int
    left_out: Tuple[int, ...] = ()


class Inadmissible(ValueError):
    """What was asked for cannot be carried out; nothing has been sent."""


class Collectives(ABC):
    """One rank's end of a group: messages and collectives on flat, contiguous arrays.

    One thread uses it.  Every method that waits raises PeerLost, CollectiveTimeout, WireError or,
    where ranks made different calls, CollectiveMismatch or LengthMismatch; after any of these
    nothing but `abort` is of use, unless a `receive` or `take` was only late.  Inadmissible and
    NotSupported come before anything is sent.
    """

    member: Member

    def express(self, array: NDArray[Any], kind: ReduceKind, seconds: float) -> bool:  # noqa: ARG002 - for those who can
        """all_reduce *array* as it is, if this is a call that can be made quicker; else False."""
        return False

    @abstractmethod
    def send(self, to: int, tag: int, data: memoryview, call: Call) -> None:
        """Send a message; returns once its memory may change."""

    @abstractmethod
    def receive(self, source: int, tag: int, into: memoryview, call: Call) -> None:
        """Fill *into* with the next message, which must be of that size."""

    @abstractmethod
    def take(self, source: int, tag: int, call: Call) -> memoryview:
        """Return the next message, of any length."""

    @abstractmethod
    def barrier(self, call: Call) -> None:
        """Let no rank go on before every rank has come."""

    @abstractmethod
    def broadcast(self, data: NDArray[Any], root: int, call: Call) -> None:
        """Give every rank the *data* of *root*."""

    @abstractmethod
    def all_gather(self, data: NDArray[Any], out: NDArray[Any], call: Call) -> None:
        """Fill *out* with every rank's *data*, by rank."""

    @abstractmethod
    def all_reduce(
        self, data: NDArray[Any], kind: ReduceKind, dtype: Dtype, call: Call, *, exact: bool
    ) -> None:
        """Reduce *data* over all ranks, in place; *exact* sums float32 in float64."""

    @abstractmethod
    def all_reduce_typed(
        self, data: NDArray[Any], kind: ReduceKind, dtype: Dtype, call: Call
    ) -> None:
        """Reduce *data* over all ranks, in place, as upstream does for each dtype."""

    @abstractmethod
    def reduce(
        self, data: NDArray[Any], root: int, kind: ReduceKind, dtype: Dtype, call: Call
    ) -> None:
        """Reduce *data* over all ranks at *root*, in place; the others' stays as it is."""

    @abstractmethod
    def reduce_scatter(
        self, data: NDArray[Any], out: NDArray[Any], kind: ReduceKind, dtype: Dtype, call: Call
    ) -> None:
        """Reduce *data* over all ranks; *out* is this rank's share of the near-equal split."""

    @abstractmethod
    def all_to_all(self, data: NDArray[Any], out: NDArray[Any], call: Call) -> None:
        """Send the i-th equal part of *data* to rank i; *out* holds what came, by rank."""

    @abstractmethod
    def all_to_all_v(self, parts: Sequence[NDArray[Any]], call: Call) -> List[NDArray[Any]]:
        """Send parts[i], of any length, to rank i; return what came, by rank."""

    @abstractmethod
    def ppermute(self, data: NDArray[Any], out: NDArray[Any], pairs: Pairs, call: Call) -> None:
        """Send *data* along every (source, destination); *out* stays where none leads here."""

    @abstractmethod
    def federated_average(
        self, data: NDArray[Any], dtype: Dtype, seconds: float, call: Call
    ) -> Turnout:
        """Average *data* over the ranks whose vector reaches rank 0 within *seconds*."""

    @abstractmethod
    def put(self, to: int, offset: int, data: memoryview, call: Call) -> None:
        """Store *data* in the heap of rank *to*; returns once its memory may change."""

    @abstractmethod
    def get(self, source: int, offset: int, into: memoryview, call: Call) -> None:
        """Fill *into* from the heap of rank *source*."""

    @abstractmethod
    def watch(self, seconds: float) -> None:
        """Let *seconds* pass; raise PeerLost as soon as a rank is lost."""

    @abstractmethod
    def close(self) -> None:
        """Hand over what was sent, then end all links."""

    @abstractmethod
    def abort(self, why: str) -> None:
        """End all links at once; whoever waits for this rank wakes with PeerLost."""
