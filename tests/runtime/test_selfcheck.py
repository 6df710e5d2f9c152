"""A group that computes wrong results never says READY."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, List

import numpy as np
import pytest

from rlxdeploy.runtime.algorithm.moves import Send
from rlxdeploy.runtime.algorithm.tags import Tag
from rlxdeploy.runtime.errors import GroupError, PlanMismatch, SelfCheckFailed
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.link.base import Call
from rlxdeploy.runtime.link.exchange import Exchange
from rlxdeploy.runtime.link.memory import Hub, MemoryLinks
from rlxdeploy.runtime.selfcheck import ELEMENTS, Checked, Wishes, contribution, self_check
from tests.runtime.cluster import KINDS, Cluster, Kind, in_threads, outcome, start

WORLD = 3


NO_WISHES = Wishes()


def check(group: ProcessGroup, plan: str = "", wishes: Wishes = NO_WISHES) -> Checked:
    return self_check(group, plan, wishes, time.monotonic() + 20)


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_sound_group_agrees_on_epoch_and_digest(kind: Kind, world: int) -> None:
    """All ranks return the same; the next epoch is another."""
    cluster = start(kind, world)
    first, second = cluster.run(check), cluster.run(check)
    cluster.close()

    assert len(set(first)) == 1
    assert first[0].epoch != second[0].epoch
    assert (first[0].beat_s, first[0].bench) == (0.0, False)


class BrokenLinks(MemoryLinks):
    """A build in which one rank's messages with one tag go out spoilt."""

    def __init__(self, sound: MemoryLinks, tag: int, spoil: Callable[[bytearray], None]) -> None:
        super().__init__(sound._hub, sound.member)  # noqa: SLF001 - it takes the other's place
        self._tag, self._spoil = tag, spoil

    def post(self, send: Send, call: Call) -> None:
        if send.tag == self._tag and len(send.data) > 1000:
            data = bytearray(send.data)
            self._spoil(data)
            send = send._replace(data=memoryview(data))
        super().post(send, call)


def drop_all(data: bytearray) -> None:
    data[:] = bytes(len(data))


def drop_one_element(data: bytearray) -> None:
    data[-4:] = np.float32(0).tobytes()


def double(data: bytearray) -> None:
    np.frombuffer(data, np.float32)[:] *= 2


def shift(data: bytearray) -> None:
    data[:] = data[4:] + data[:4]


@pytest.mark.parametrize("spoil", [drop_all, drop_one_element, double, shift])
@pytest.mark.parametrize("tag", [Tag.ALL_REDUCE, Tag.BROADCAST, Tag.ALL_GATHER])
@pytest.mark.parametrize("star", [False, True], ids=["mesh", "star"])
def test_a_build_that_spoils_one_contribution_fails(
    star: bool,  # noqa: FBT001 - a table of two
    tag: Tag,
    spoil: Callable[[bytearray], None],
) -> None:
    """Dropped, doubled or shifted, whole or in one element: some rank says so, none is ready."""
    spoilt_by = WORLD - 1
    links: List[MemoryLinks] = Hub(WORLD, star=star).links()
    links[spoilt_by] = BrokenLinks(links[spoilt_by], tag, spoil)
    groups = [ProcessGroup(Exchange(each), timeout=5) for each in links]

    def checked(group: ProcessGroup) -> Any:  # noqa: ANN401 - what came of it
        try:
            with group:
                return check(group)
        except GroupError as error:
            return error

    came = in_threads([partial(checked, group) for group in groups])

    assert not any(isinstance(each, Checked) for each in came)
    assert any(isinstance(each, SelfCheckFailed) for each in came), came


def test_ranks_of_different_plans_refuse_one_another() -> None:
    """Each rank is told what the others brought."""
    cluster = Cluster([ProcessGroup(Exchange(links)) for links in Hub(2).links()])
    failures = in_threads(
        [outcome(partial(check, group, f"plan {group.rank}")) for group in cluster.groups]
    )

    assert [type(each) for each in failures] == [PlanMismatch, PlanMismatch]
    assert failures[0].plans == {1: "plan 1"}
    assert failures[1].plans == {0: "plan 0"}


def test_all_follow_the_most_impatient_watchdog() -> None:
    """One rank's wish for a sign of life, or for a benchmark, binds everybody."""
    cluster = Cluster([ProcessGroup(Exchange(links)) for links in Hub(3).links()])
    wishes = (Wishes(), Wishes(9.0), Wishes(3.0, bench=True))
    agreed = cluster.run(lambda group: check(group, "", wishes[group.rank]))

    assert [(each.beat_s, each.bench) for each in agreed] == [(1.0, True)] * 3


def test_a_contribution_is_never_zero_and_sums_exactly() -> None:
    """Integers in 1..1024 which differ between ranks: float32 adds 16,384 of them exactly."""
    mine, other = contribution(5, 0, ELEMENTS), contribution(5, 1, ELEMENTS)

    assert mine.dtype == np.float32
    assert (mine.min(), mine.max()) == (1, 1024)
    assert (mine != other).mean() > 0.99
    assert (mine == np.round(mine)).all()
