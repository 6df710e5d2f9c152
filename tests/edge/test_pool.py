"""Many hosts at once, whatever each of them does."""

import threading
import time

import pytest

from rlxdeploy.edge.pool import Pool
from rlxdeploy.errors import HostError, Unreachable

NAMES = [f"h{number}" for number in range(20)]


def test_answers_come_in_the_order_of_the_hosts() -> None:
    """Whoever answers first, outcomes stand in the order asked, and no more run than allowed."""
    running, most, guard = 0, 0, threading.Lock()

    def work(number: int, _: float) -> int:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        time.sleep(0.02 - number / 1000)
        with guard:
            running -= 1
        return number * 2

    outcomes = Pool(4, 5.0).on_hosts(work, {name: at for at, name in enumerate(NAMES)}, "count")

    assert list(outcomes.done.items()) == [(name, at * 2) for at, name in enumerate(NAMES)]
    assert not outcomes.failed
    assert 1 < most <= 4


def test_one_hosts_failure_is_a_value() -> None:
    """A HostError is that host's outcome with its class; the others are done."""

    def work(name: str, _: float) -> str:
        if name == "b":
            raise Unreachable(name, "connect", "refused")
        return name

    outcomes = Pool(2, 5.0).on_hosts(work, {name: name for name in "abc"}, "ask")

    assert list(outcomes.done) == ["a", "c"]
    assert isinstance(outcomes.failed["b"], Unreachable)


def test_a_hung_host_costs_its_own_deadline_only() -> None:
    """With one place, a host that hangs past its deadline is given up and the next one begun."""
    never = threading.Event()

    def work(name: str, deadline: float) -> str:
        assert deadline > time.monotonic()
        return name if name != "a" or never.wait(30) else ""

    outcomes = Pool(1, 0.1).on_hosts(work, {name: name for name in "ab"}, "ask")
    never.set()

    assert list(outcomes.done) == ["b"]
    assert str(outcomes.failed["a"]) == "a: ask: did not finish by its deadline"


def test_a_bug_is_raised() -> None:
    """An exception that is no HostError is ours, not the host's."""

    def work(name: str, _: float) -> str:
        raise ZeroDivisionError(name)

    with pytest.raises(ZeroDivisionError):
        Pool(2, 5.0).on_hosts(work, {"a": "a"}, "ask")


def test_no_host_is_begun_after_the_stop() -> None:
    """Those that run are finished; the others say that they were not begun."""
    stop = threading.Event()

    def work(name: str, _: float) -> str:
        stop.set()
        return name

    outcomes = Pool(1, 5.0, stop).on_hosts(work, {name: name for name in "abc"}, "ask")

    assert list(outcomes.done) == ["a"]
    assert {type(error) for error in outcomes.failed.values()} == {HostError}
    assert "not begun" in str(outcomes.failed["c"])
