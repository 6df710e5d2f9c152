"""Calls at their time: in order, called off, and none held up by another."""

import threading
import time

from rlxdeploy.edge.ssh.alarms import Alarms

PATIENCE_S = 10.0


def test_calls_are_made_in_the_order_of_their_times() -> None:
    """A later call does not hold an earlier one up that is asked for after it."""
    alarms, made, done = Alarms(), list[str](), threading.Event()
    now = time.monotonic()

    def later() -> None:
        made.append("later")
        done.set()

    alarms.at(now + 0.2, later)
    alarms.at(now + 0.05, lambda: made.append("sooner"))

    assert done.wait(PATIENCE_S)
    assert made == ["sooner", "later"]
    assert time.monotonic() - now >= 0.2


def test_a_call_that_is_called_off_is_not_made() -> None:
    """The thread that would have made it goes on to the next."""
    alarms, made, done = Alarms(), list[str](), threading.Event()
    alarms.call_off(alarms.at(time.monotonic() + 0.05, lambda: made.append("no")))
    alarms.at(time.monotonic() + 0.1, done.set)

    assert done.wait(PATIENCE_S)
    assert made == []


def test_a_call_that_hangs_holds_no_other_up() -> None:
    """Each is made by a thread of its own."""
    alarms, hangs, done = Alarms(), threading.Event(), threading.Event()
    alarms.at(time.monotonic(), lambda: hangs.wait(PATIENCE_S))
    alarms.at(time.monotonic(), done.set)

    assert done.wait(PATIENCE_S)
    hangs.set()
