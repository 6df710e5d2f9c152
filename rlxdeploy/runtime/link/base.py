"""What a collective, a group and a node may ask of the links to the other ranks."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Dict, NamedTuple, Sequence

from rlxdeploy.runtime.algorithm.moves import (
    Collect,
    Entrust,
    Gather,
    Member,
    Moves,
    Receive,
    Send,
)
from rlxdeploy.runtime.link.heap import Heap


class Call(NamedTuple):
    """One call of a group: what errors call it, and when it must have ended.

    *whole* says that no rank can have done its part before all have begun, so that a rank known
    to be lost is reason enough to fail.
    """

    op: str
    seconds: float
    deadline: float
    whole: bool = False


def begin(op: str, seconds: float, *, whole: bool = False) -> Call:
    """Return a call that has *seconds* from now."""
    return Call(op, seconds, time.monotonic() + seconds, whole)


class Links(ABC):
    """The connections of one rank to those it has a link to; used by one thread.

    Waiting methods raise PeerLost, CollectiveTimeout, WireError; after any of these from within a
    collective nothing but `abort` is of use.
    """

    member: Member
    # The biggest message in bytes; the receiver would refuse more.
    max_message: int
    heap: Heap
    # How long a rank that is late stays: who waits for it is then late too, and has not lost it.
    late_pause_s: float = 0.0

    @abstractmethod
    def post(self, send: Send, call: Call) -> None:
        """Begin to send; the bytes must stay as they are until `flush`."""

    @abstractmethod
    def entrust(self, send: Send, call: Call) -> None:
        """Send bytes that stay as they are for good, without ever waiting for that."""

    @abstractmethod
    def put(self, to: int, offset: int, data: memoryview, call: Call) -> None:
        """Begin to store *data* in the heap of rank *to*; it stays as it is until `flush`."""

    @abstractmethod
    def get(self, source: int, offset: int, into: memoryview, call: Call) -> None:
        """Fill *into* from the heap of rank *source*, which answers when it is in a call."""

    @abstractmethod
    def collect(self, receives: Sequence[Receive], call: Call) -> None:
        """Wait until all *receives* are carried out; their sources differ."""

    @abstractmethod
    def take(self, source: int, tag: int, call: Call) -> memoryview:
        """Wait for the next message of any length from *source* with *tag*."""

    @abstractmethod
    def gather(
        self, sources: Sequence[int], tag: int, until: float, call: Call
    ) -> Dict[int, memoryview]:
        """Take the messages that are there by *until*; those still to come are thrown away."""

    @abstractmethod
    def flush(self, call: Call) -> None:
        """Wait until everything posted is out of the caller's memory."""

    @abstractmethod
    def watch(self, seconds: float) -> None:
        """Let *seconds* pass; raise PeerLost as soon as a link ends."""

    @abstractmethod
    def close(self) -> None:
        """Hand over what was sent, then end all links."""

    @abstractmethod
    def abort(self) -> None:
        """End all links at once; whoever waits for this rank wakes with PeerLost."""


def drive(links: Links, moves: Moves, call: Call) -> None:
    """Carry out a collective."""
    for move in moves:
        if isinstance(move, Send):
            links.post(move, call)
        elif isinstance(move, Receive):
            links.collect((move,), call)
        elif isinstance(move, Collect):
            links.collect(move.receives, call)
        elif isinstance(move, Gather):
            _gather(links, move, call)
        elif isinstance(move, Entrust):
            links.entrust(Send(*move), call)
        else:
            links.flush(call)
    links.flush(call)


def _gather(links: Links, move: Gather, call: Call) -> None:
    if move.seconds is None:
        for source in move.sources:
            move.came[source] = links.take(source, move.tag, call)
    else:
        until = min(call.deadline, time.monotonic() + move.seconds)
        move.came.update(links.gather(move.sources, move.tag, until, call))
