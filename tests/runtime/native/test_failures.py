"""What the ranks of the native wire get when their programs differ, or when one of them goes."""

from __future__ import annotations

import time
from typing import Callable, Dict, List, Optional, Tuple, Type

import numpy as np
import pytest

from rlxdeploy.runtime.algorithm.fold import ReduceKind
from rlxdeploy.runtime.algorithm.moves import as_bytes
from rlxdeploy.runtime.errors import (
    CollectiveMismatch,
    CollectiveTimeout,
    GroupError,
    LengthMismatch,
    NoLink,
    PeerLost,
)
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.native import Native
from rlxdeploy.runtime.vocabulary import Dtype
from tests.runtime.cluster import soon_s
from tests.runtime.native.ranks import TINY, call, each, group, results

Deed = Callable[[Native], None]


def reduced(size: int, dtype: Dtype = Dtype.FLOAT32, kind: ReduceKind = ReduceKind.SUM) -> Deed:
    def deed(native: Native) -> None:
        native.all_reduce(np.zeros(size, dtype.name.lower()), kind, dtype, call("all_reduce"))

    return deed


def sent(root: int) -> Deed:
    def deed(native: Native) -> None:
        native.broadcast(np.zeros(8, np.float32), root, call("broadcast"))

    return deed


def permuted(*pairs: Tuple[int, int]) -> Deed:
    def deed(native: Native) -> None:
        data = np.zeros(8, np.float32)
        native.ppermute(data, data.copy(), pairs, call("ppermute"))

    return deed


def met(native: Native) -> None:
    native.barrier(call("barrier"))


# What all ranks but the last call, what the last calls, and the words that must tell them apart.
MISMATCHES: Dict[str, Tuple[Deed, Deed, str, str]] = {
    "sizes": (reduced(4), reduced(5), "of 4 float32", "of 5 float32"),
    "small against big": (reduced(4), reduced(1 << 20), "of 4 float32", "of 1048576 float32"),
    "dtypes of one size": (reduced(4), reduced(4, Dtype.INT32), "4 float32", "4 int32"),
    "dtypes of one length": (
        reduced(4),
        reduced(2, Dtype.FLOAT64),
        "4 float32",
        "2 float64",
    ),
    "kinds": (reduced(4), reduced(4, kind=ReduceKind.MAX), "all_reduce(sum)", "all_reduce(max)"),
    "operations": (met, reduced(4), "barrier, call 1", "all_reduce(sum) of 4"),
    "nothing against something": (reduced(0), reduced(1), "of 0 float32", "of 1 float32"),
}


@pytest.mark.parametrize("star", [False, True], ids=["mesh", "star"])
@pytest.mark.parametrize("world", [2, 3, 4])
@pytest.mark.parametrize("case", MISMATCHES.values(), ids=MISMATCHES.keys())
def test_different_calls_are_told_on_every_rank_with_both_descriptions(
    case: Tuple[Deed, Deed, str, str],
    world: int,
    star: bool,  # noqa: FBT001 - a case
) -> None:
    """Nobody hangs and nobody computes: all ranks raise, and all say who called what."""
    many, last, words, others = case

    def body(native: Native, rank: int) -> None:
        (last if rank == world - 1 else many)(native)

    with group(world, star=star) as natives:
        errors = each(natives, body)

    for error in errors:
        assert isinstance(error, CollectiveMismatch), error
        assert words in str(error)
        assert others in str(error)
        assert world - 1 in error.calls


def test_different_roots_are_told() -> None:
    """Two ranks that both think they are the root find out, at the latest in the next call."""

    def body(native: Native, rank: int) -> None:
        sent(rank)(native)
        met(native)

    with group(2) as natives:
        errors = each(natives, body)

    for error in errors:
        assert isinstance(error, CollectiveMismatch), error
        assert "broadcast(root " in str(error)


def test_different_permutations_are_told() -> None:
    """The pairs of a ppermute are compared although they travel in no message."""
    with group(3) as natives:
        errors = each(
            natives,
            lambda native, rank: permuted((0, 1), (1, 2), *((2, 0),) * (rank == 0))(native),
        )

    assert any(isinstance(error, CollectiveMismatch) for error in errors), errors


def test_a_rank_that_is_a_call_behind_is_told() -> None:
    """Equal calls of different number are different calls."""
    with group(2) as natives:
        results(natives, lambda native, _: met(native))
        natives[0]._sequence += 1  # noqa: SLF001 - a program that skipped a call
        errors = each(natives, lambda native, _: met(native))

    for error in errors:
        assert isinstance(error, CollectiveMismatch), error
        assert "call 2" in str(error)
        assert "call 3" in str(error)


@pytest.mark.parametrize("star", [False, True], ids=["mesh", "star"])
@pytest.mark.parametrize("size", [4, 1 << 20])
@pytest.mark.parametrize("victim", [0, 1, 2])
def test_all_name_the_rank_that_is_lost(victim: int, size: int, star: bool) -> None:  # noqa: FBT001 - a case
    """A rank whose sockets close is named by every other rank within a second, in a star too."""

    def body(native: Native, rank: int) -> float:
        if rank == victim:
            for channel in native._vigil.channels.values():  # noqa: SLF001 - a process that dies
                channel.sock.close()
            return 0.0
        started = time.monotonic()
        with pytest.raises(PeerLost) as caught:
            reduced(size)(native)
        assert caught.value.rank == victim
        assert caught.value.op == "all_reduce"
        return time.monotonic() - started

    with group(3, star=star) as natives:
        assert max(results(natives, body)) < soon_s()


@pytest.mark.parametrize("star", [False, True], ids=["mesh", "star"])
def test_all_name_the_rank_that_hangs(star: bool) -> None:  # noqa: FBT001 - a case
    """At the deadline the rank nobody heard is named, not the ranks that wait for it too."""

    def body(native: Native, rank: int) -> Optional[Tuple[int, ...]]:
        if rank == 2:
            time.sleep(2.5)
            return None
        with pytest.raises(CollectiveTimeout) as caught:
            native.all_reduce(
                np.zeros(4, np.float32), ReduceKind.SUM, Dtype.FLOAT32, call("all_reduce", 0.3)
            )
        return caught.value.missing

    # On a busy machine the others take their time to say whom they wait for.
    with group(4, star=star, limits=Limits(farewell_s=1.0)) as natives:
        assert [got for got in results(natives, body) if got is not None] == [(2,)] * 3


@pytest.mark.parametrize(
    ("leave", "words"),
    [
        (Native.close, "finished and left the group"),
        (lambda native: native.abort("it was interrupted"), "it was interrupted"),
    ],
    ids=["close", "abort"],
)
def test_who_leaves_says_why(leave: Callable[[Native], None], words: str) -> None:
    """A goodbye and an abort wake who waits, and tell finished from failed."""

    def body(native: Native, rank: int) -> str:
        if rank == 1:
            leave(native)
            return words
        with pytest.raises(PeerLost) as caught:
            native.watch(30)
        assert caught.value.rank == 1
        return caught.value.why

    with group(3) as natives:
        assert all(words in why for why in results(natives, body))


def test_what_was_sent_before_a_goodbye_still_arrives() -> None:
    """A rank may leave right after its part of a collective is done; the others finish theirs."""

    def body(native: Native, rank: int) -> int:
        data = np.full(300_000, rank, np.float32)
        native.broadcast(data, 0, call())
        if rank == 0:
            native.close()
            return 0
        time.sleep(0.05)
        return int(data.sum())

    with group(3) as natives:
        assert results(natives, body) == [0, 0, 0]


def test_messages_wait_for_who_asks_for_them() -> None:
    """Tags are queues of their own, a collective may come between, and big ones cross."""
    big = np.arange(100_000, dtype=np.float32)

    def body(native: Native, rank: int) -> List[bytes]:
        other = 1 - rank
        for tag in (1, 2):
            native.send(other, tag, memoryview(b"%d" % tag), call())
        native.send(other, 3, as_bytes(big), call())
        native.barrier(call())
        into = np.empty_like(big)
        native.receive(other, 3, as_bytes(into), call())
        assert (into == big).all()
        return [bytes(native.take(other, tag, call())) for tag in (2, 1)]

    with group(2, buffers=TINY) as natives:
        assert results(natives, body) == [[b"2", b"1"]] * 2


def test_a_message_that_comes_too_late_leaves_the_group_usable() -> None:
    """A recv that times out costs nothing but its time."""

    def body(native: Native, rank: int) -> None:
        if rank == 1:
            with pytest.raises(CollectiveTimeout):
                native.take(0, 7, call("recv", 0.1))
        native.barrier(call())

    with group(2) as natives:
        results(natives, body)


@pytest.mark.parametrize(
    ("deed", "error"),
    [
        (lambda native: native.receive(1, 7, memoryview(bytearray(3)), call()), LengthMismatch),
        (lambda native: native.take(2, 7, call()), NoLink),
    ],
    ids=["length", "link"],
)
def test_a_message_that_cannot_be_received_is_refused(
    deed: Callable[[Native], None], error: Type[GroupError]
) -> None:
    """A message of another size than asked for, or from a rank without a link, is an error."""
    with group(3, star=True) as natives:
        natives[1].send(0, 7, memoryview(b"four"), call())
        with pytest.raises(error):
            deed(natives[0] if error is LengthMismatch else natives[1])
