"""The built-in node: join, prove that the group computes, say READY, stay until told to go.

Until the first whole-group barrier everything that goes wrong with a link is part of the join:
the links are formed again until the join deadline.  Afterwards a lost rank ends this one too, with
exit code 75, so that whoever starts the ranks lets all of them join again.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from types import FrameType
from typing import Callable, Mapping, Optional, Sequence, Tuple, Union

from rlxdeploy.runtime.bench import bench
from rlxdeploy.runtime.bringup import Bringup
from rlxdeploy.runtime.errors import (
    CollectiveTimeout,
    GroupError,
    JoinTimeout,
    PeerLost,
    PlanMismatch,
    WireError,
)
from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.report import Reporter
from rlxdeploy.runtime.selfcheck import Checked, Wishes, self_check
from rlxdeploy.runtime.settings import Settings

# How long the group rests between two attempts to form.
_PAUSE_S = 0.2
# Without a watchdog nothing is due; a lost rank ends the wait at once.
_LONG_S = 3600.0
# Within so long of one another ranks that are stopped together are told.
_TOGETHER_S = 1.0


class Leave(BaseException):
    """The process was told to end; not an Exception, so that nothing on the way swallows it."""


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Be a node until told to leave; return the exit code: 0 finished, 75 lost, 78 refused."""
    options = _parse(arguments)
    report: Optional[Reporter] = None
    failed: Optional[GroupError] = None
    told = False
    try:
        _on_signals(_leave)
        settings = Settings.from_env(environ)
        report = Reporter(settings, environ, _say)
        _live(settings, options, report)
    except Leave:
        told = True
    except GroupError as error:
        failed = error
    _on_signals(signal.SIG_IGN)
    if report is not None and told:
        report.ending()
    elif report is not None:
        report.leaving(str(failed) if failed else None)
    elif failed is not None:
        _say(str(failed))
    return failed.exit_code if failed else 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m rlxdeploy.runtime",
        description="Join the group the environment describes (RANK, WORLD, PEERS, ...), check "
        "it, and stay in it.",
        epilog="Exit codes: 0 finished, 75 a rank was lost or never came, 78 refused.",
    )
    parser.add_argument("--once", action="store_true", help="leave after the check")
    parser.add_argument(
        "--bench", action="store_true", help="print latency and bandwidth per peer, then leave"
    )
    return parser.parse_args(arguments)


def _live(settings: Settings, options: argparse.Namespace, report: Reporter) -> None:
    group, checked = _join(settings, options, report)
    with group:
        try:
            report.ready(checked.epoch, checked.digest)
            if checked.bench:
                bench(group, _print)
            if not options.once and not checked.bench:
                _stay(group, checked, report)
        except Leave:
            # Told to, this rank has finished: the others hear a goodbye, not of a failure.
            group.close()
            raise
        except PeerLost as lost:
            if lost.finished:
                # Mostly all ranks are told to leave, one after the other: this one is the next.
                time.sleep(_TOGETHER_S)
            raise


def _join(
    settings: Settings, options: argparse.Namespace, report: Reporter
) -> Tuple[ProcessGroup, Checked]:
    """Form and check the group, again and again until it holds or the join deadline passes."""
    wishes = Wishes(report.watchdog_s or 0.0, options.bench)
    plan = f"job {settings.job!r} plan {settings.plan!r} world {settings.world}"
    bringup = Bringup(settings, Limits(), report)
    last: Optional[GroupError] = None
    try:
        while True:
            try:
                group = bringup.form()
            except JoinTimeout as error:
                raise (last if isinstance(last, PlanMismatch) else error) from last
            report.linked()
            try:
                return group, self_check(group, plan, wishes, bringup.deadline)
            except (PeerLost, WireError, PlanMismatch, CollectiveTimeout) as error:
                group.abort()
                if time.monotonic() + _PAUSE_S >= bringup.deadline:
                    raise
                if str(error) != str(last):
                    report.noticed(f"{error}; forming the group again")
                last = error
                time.sleep(_PAUSE_S)
    finally:
        bringup.close()


def _stay(group: ProcessGroup, checked: Checked, report: Reporter) -> None:
    """Stay until told to leave; a rank that feeds a watchdog does so only after all have met."""
    while True:
        group.watch(checked.beat_s or _LONG_S)
        if checked.beat_s:
            group.barrier()
            report.alive()


def _leave(_number: int, _frame: Optional[FrameType]) -> None:
    raise Leave


def _on_signals(deed: Union[Callable[[int, Optional[FrameType]], None], signal.Handlers]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, deed)


def _say(line: str) -> None:
    print(f"rlx: {line}", file=sys.stderr, flush=True)  # noqa: T201 - the node's own voice


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - what was asked for


def run() -> int:
    """Be a node with this process's arguments and environment."""
    return main(sys.argv[1:], os.environ)
