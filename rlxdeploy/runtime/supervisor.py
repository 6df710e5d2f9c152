"""Process launch: keep one rank running on a host without a service manager for us.

`python3 -m rlxdeploy.runtime.supervisor --file PROCESS.json --release ID` leaves its starter behind
and says in the supervisor file what it runs and how that fares.  SIGTERM stops the rank and the
supervisor; the last record stays.  One thread: everything that happens comes to `_turn` as a
readable descriptor or as a deadline.
"""

import argparse
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional

from rlxdeploy.runtime.supervision.child import Child, raise_descriptor_limit
from rlxdeploy.runtime.supervision.daemon import AlreadyRuns, detach, hold_alone
from rlxdeploy.runtime.supervision.launch import Launch, LaunchError, environment, read_launch
from rlxdeploy.runtime.supervision.log import BoundedLog
from rlxdeploy.runtime.supervision.notify import NotifySocket
from rlxdeploy.runtime.supervision.policy import (
    EXIT_CHDIR,
    EXIT_EXEC,
    Ending,
    StartLimit,
    restarts,
)
from rlxdeploy.runtime.supervision.record import Record

# A process alive this long has got past its imports and its arguments.
ALIVE_S = 5.0

EX_CONFIG = 78
SIGNALS_AT_ONCE = 4096


class Supervisor:
    """One rank's process: started, listened to, started again, stopped."""

    def __init__(self, launch: Launch, release: str) -> None:
        self.launch, self.release = launch, release
        self._log = BoundedLog(Path(launch.log_file))
        self._log.take_standard_streams()
        self._record = Record(launch, release, self._log.say)
        self._notify = NotifySocket(self._record.path)
        self._wake = _signals_as_bytes()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._notify, selectors.EVENT_READ, self._on_notify)
        self._selector.register(self._wake, selectors.EVENT_READ, self._on_signal)
        self._limit = StartLimit(launch.start_limit_burst, launch.start_limit_interval_s)
        self._deadlines: Dict[Callable[[], None], float] = {}
        self._child: Optional[Child] = None
        self._cause = ""
        self._stopping = self._over = False

    def run(self, up: Callable[[], None]) -> None:
        """Supervise until the rank is over or SIGTERM comes; call *up* once it is started."""
        try:
            self._start()
            up()
            while not self._over:
                self._turn()
        finally:
            if self._child is not None:
                self._child.kill()
            self._notify.close()

    def _turn(self) -> None:
        soonest = min(self._deadlines.values(), default=None)
        wait = None if soonest is None else max(0.0, soonest - time.monotonic())
        for key, _ in self._selector.select(wait):
            # One that ran before it may have closed this one.
            if key.fileobj in self._selector.get_map():
                key.data()
        now = time.monotonic()
        for action in [action for action, at in self._deadlines.items() if at <= now]:
            # One that ran before it may have taken this one back.
            if self._deadlines.pop(action, None) is not None:
                action()

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        self._deadlines[action] = time.monotonic() + seconds

    def _start(self) -> None:
        burst, interval = self.launch.start_limit_burst, self.launch.start_limit_interval_s
        if not self._limit.admits(time.monotonic()):
            self._finish("failed", f"started {burst} times in {interval:g} s; not again")
            return
        self._cause = ""
        try:
            env = environment(self.launch, str(self._notify.path), os.environ)
            child = Child(
                self.launch.argv, self.launch.workdir, env, self._selector, self._log.write
            )
        except LaunchError as error:
            self._log.say(str(error))
            self._ended(Ending(EX_CONFIG))
        except OSError as error:
            self._log.say(f"cannot start {self.launch.argv[0]}: {error}")
            chdir = error.filename == self.launch.workdir
            self._ended(Ending(EXIT_CHDIR if chdir else EXIT_EXEC))
        else:
            self._started(child)

    def _started(self, child: Child) -> None:
        self._child = child
        self._log.say(f"started pid {child.pid}, release {self.release}")
        if self.launch.start_timeout_s is None:
            # systemd calls a Type=exec service active as soon as its program runs.
            self._record.started(child.pid, "active", time.time())
            self._after(ALIVE_S, self._on_alive)
        else:
            self._record.started(child.pid, "activating", time.time())
            self._after(self.launch.start_timeout_s, self._on_start_timeout)

    def _on_alive(self) -> None:
        self._record.publish(ready=True)

    def _on_notify(self) -> None:
        for message in self._notify.messages():
            if self._child is None or self._cause:
                continue
            if "STATUS" in message:
                self._record.publish(status=message["STATUS"])
            if message.get("READY") == "1":
                self._deadlines.pop(self._on_start_timeout, None)
                self._record.joined()
                self._feed_watchdog()
            if message.get("WATCHDOG") == "1" and self._on_watchdog in self._deadlines:
                self._feed_watchdog()

    def _feed_watchdog(self) -> None:
        if self.launch.watchdog_s is not None and not self._stopping:
            self._after(self.launch.watchdog_s, self._on_watchdog)

    def _on_start_timeout(self) -> None:
        self._end(f"not READY after {self.launch.start_timeout_s:g} s", signal.SIGTERM)

    def _on_watchdog(self) -> None:
        self._end(f"no WATCHDOG=1 for {self.launch.watchdog_s:g} s", signal.SIGABRT)

    def _end(self, cause: str, by: signal.Signals) -> None:
        self._cause = cause
        self._log.say(cause)
        self._signal_main(by)

    def _signal_main(self, by: signal.Signals) -> None:
        if self._child is not None:
            self._child.signal(by)
            self._after(self.launch.stop_timeout_s, self._on_stop_timeout)

    def _on_stop_timeout(self) -> None:
        if self._child is not None:
            self._cause = self._cause or f"killed {self.launch.stop_timeout_s:g} s after SIGTERM"
            self._child.kill()

    def _on_signal(self) -> None:
        numbers = self._wake.recv(SIGNALS_AT_ONCE)
        if signal.SIGCHLD in numbers and self._child is not None:
            code = self._child.ended()
            if code is not None:
                self._child = None
                self._ended(Ending(code, self._cause))
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            self._stop()

    def _stop(self) -> None:
        if self._stopping or self._over:
            return
        self._stopping = True
        if self._child is None:
            self._finish("inactive", "stopped")
            return
        for action in (self._on_start_timeout, self._on_alive, self._on_watchdog):
            self._deadlines.pop(action, None)
        self._record.publish(ready=False, status="stopping")
        self._signal_main(signal.SIGTERM)

    def _ended(self, ending: Ending) -> None:
        self._deadlines.clear()
        self._log.say(f"ended: {ending}")
        self._record.ended(ending.exit_status)
        if self._stopping:
            self._finish("inactive" if ending.clean else "failed", f"stopped: {ending}")
        elif restarts(ending, self.launch.restart, self.launch.restart_prevent):
            self._record.publish(
                active="activating",
                status=f"starts again after: {ending}",
                restarts=self._record.restarts + 1,
            )
            self._after(self.launch.restart_s, self._start)
        else:
            self._finish("exited" if ending.clean else "failed", str(ending))

    def _finish(self, active: str, status: str) -> None:
        self._over = True
        self._log.say(f"{active}: {status}")
        self._record.publish(active=active, ready=False, status=status)


def _signals_as_bytes() -> socket.socket:
    hears, says = socket.socketpair()
    hears.settimeout(0)
    says.settimeout(0)
    # A handler, unlike SIG_IGN, is not passed on to the process; a starter may have ignored some.
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(says.detach(), warn_on_full_buffer=False)
    return hears


def _serve(launch: Launch, release: str, report: Callable[[str], None]) -> None:
    file = Path(launch.supervisor_file)
    try:
        for folder in (file.parent, Path(launch.log_file).parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        hold_alone(file.with_suffix(".lock"))
        raise_descriptor_limit()
        supervisor = Supervisor(launch, release)
    except AlreadyRuns:
        report(f"rank {launch.rank} of {launch.job} already has a supervisor: see {file}")
    except OSError as error:
        report(f"cannot supervise rank {launch.rank} of {launch.job}: {error}")
    else:
        supervisor.run(lambda: report(""))


def main(arguments: List[str]) -> int:
    """Start a supervisor and return 0 once it runs, 1 if it cannot, 78 for an unusable file."""
    parser = argparse.ArgumentParser(prog="rlxdeploy.runtime.supervisor")
    parser.add_argument("--file", type=Path, required=True, help="the process file")
    parser.add_argument("--release", required=True, help="the release it belongs to")
    options = parser.parse_args(arguments)
    try:
        launch = read_launch(options.file)
    except LaunchError as error:
        sys.stderr.write(f"{error}\n")
        return EX_CONFIG
    return detach(lambda report: _serve(launch, options.release, report))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
