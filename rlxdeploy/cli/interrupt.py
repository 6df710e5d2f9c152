"""Ctrl-C and SIGTERM while hosts are changed: the first ends in good order, the second at once."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from rlxdeploy.app.run import Run
from rlxdeploy.cli.document import SIGNALS
from rlxdeploy.cli.failure import Form, Interrupted, Terminated, report_failure
from rlxdeploy.cli.screen import Screen
from rlxdeploy.cli.states import show_states
from rlxdeploy.errors import RlxDeployError


@dataclass(slots=True)
class Watch:
    """What is told when a signal comes; *run* is set once there is one, *resume* is a command."""

    screen: Screen
    resume: str
    run: Run | None = None
    _signals: int = 0

    def hear(self, number: int, _frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt or Terminated the first time; end the process the second."""
        self._signals += 1
        if self._signals > 1:
            self._stop_at_once(number)
        # Past the stream: the signal may have come in the middle of writing to it.
        with suppress(OSError):
            os.write(sys.stderr.fileno(), b"ending in good order; once more to stop at once\n")
        if number == signal.SIGTERM:
            raise Terminated("terminated")
        raise KeyboardInterrupt

    def report(self, how: str) -> None:
        """Write down how the run ended, and tell what each host has come to."""
        if self.run is None:
            self.screen.tell("Nothing was changed on any host.", "bold", failed=True)
        else:
            try:
                self.run.end(how)
            finally:
                show_states(self.screen, self.run.states())
        self.screen.tell(f"to go on: {self.resume}", failed=True)

    def _stop_at_once(self, number: int) -> None:
        # Once more has nothing to add, and would say all of this again.
        for one in SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        how = "terminated" if number == signal.SIGTERM else "interrupted"
        # Whatever stands in the way of the last words, the process has to end.
        try:
            with suppress(RlxDeployError, OSError, RuntimeError):
                self.report(f"{how} twice")
            error = Terminated(how) if number == signal.SIGTERM else Interrupted(how)
            form = Form.DOCUMENT if self.screen.as_json else Form.WORDS
            with suppress(OSError, RuntimeError):
                report_failure(error, form)
                sys.stdout.flush()
        finally:
            # Threads that wait for hosts would hold an ordinary exit up.
            os._exit(128 + number)


@contextmanager
def in_good_order(screen: Screen, resume: str) -> Iterator[Watch]:
    """Take signals as `Watch` says while the body runs."""
    watch = Watch(screen, resume)
    before = {one: signal.signal(one, watch.hear) for one in SIGNALS}
    try:
        yield watch
    except (KeyboardInterrupt, Terminated) as error:
        watch.report("terminated" if isinstance(error, Terminated) else "interrupted")
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
