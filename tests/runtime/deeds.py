"""What a rank of the failure table does: `python -m tests.runtime.deeds SOCKET` forks one an order.

An order has a rank's variables (`env`), `limits`, and what comes after a few rounds of work
(`then`).  The rank says what it notices in its join, `joined`, and in its last line how it ended.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from typing import Any, Callable, Dict, Mapping

import numpy as np

from rlxdeploy.runtime.bringup import Bringup
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.report import Reporter
from rlxdeploy.runtime.settings import Settings
from rlxdeploy.runtime.wire import handshake
from tests.runtime.template import serve

ROUNDS = 5
# What each call of LATE may take.
LATE_S = 1.0


def work(group: ProcessGroup) -> None:
    """Make one call that is on its way for a while."""
    group.all_reduce(np.ones(100_000, np.float32))


def go_on(group: ProcessGroup) -> None:
    """Work until an error ends it."""
    while True:
        work(group)


def go_on_for_a_second(group: ProcessGroup) -> None:
    """Make one more call, which has a deadline."""
    group.all_reduce(np.ones(100_000, np.float32), timeout=LATE_S)


def stop(_group: ProcessGroup) -> None:
    """Hang: the kernel still answers for this rank, and nobody else does."""
    os.kill(os.getpid(), signal.SIGSTOP)


def end(_group: ProcessGroup) -> None:
    """Be a process that ends without a word."""
    os._exit(1)


def fail(group: ProcessGroup) -> None:
    """Be a program with a fault."""
    with group:
        raise KeyError("planted")


THEN: Dict[str, Callable[[ProcessGroup], None]] = {
    "go on": go_on,
    "go on for a second": go_on_for_a_second,
    "stop": stop,
    "end": end,
    "fail": fail,
    "abort": ProcessGroup.abort,
    "close": ProcessGroup.close,
}


def obey(order: Mapping[str, Any]) -> None:
    """Be a rank, and say how that ended."""
    handshake.VERSION = order["version"]
    try:
        group = joined(order)
        say("joined")
        for _ in range(ROUNDS):
            work(group)
        THEN[order["then"]](group)
    except Exception as error:  # noqa: BLE001 - it is what the test looks at
        say(json.dumps(told(error), default=str))
    else:
        say(json.dumps({"error": "", "text": "", "values": {}}))


def joined(order: Mapping[str, Any]) -> ProcessGroup:
    """Join as `Node.connect` does, and let it be seen what happens meanwhile."""
    settings = Settings.from_env(order["env"])
    report = Reporter(settings, {}, say)
    bringup = Bringup(settings, Limits(**order["limits"]), report)
    try:
        return bringup.form()
    finally:
        bringup.close()


def told(error: Exception) -> Dict[str, Any]:
    """Return *error* in words and values that JSON has."""
    values = {**vars(error), "exit_code": getattr(error, "exit_code", None)}
    return {"error": type(error).__name__, "text": str(error), "values": values}


def say(line: str) -> None:
    """Say one line."""
    sys.stdout.write(" ".join(line.split("\n")) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        serve(orders, obey)
