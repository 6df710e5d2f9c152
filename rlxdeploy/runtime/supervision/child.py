"""One process of a rank, in a session and group of its own, and what it writes."""

import contextlib
import os
import resource
import selectors
import signal
import subprocess
from typing import Callable, Mapping, Optional, Sequence

CHUNK = 65536

# As many descriptors as the unit's LimitNOFILE= allows: a mesh of ranks needs a socket for each.
DESCRIPTORS = 65536


class Child:
    """A started process; *write* gets its output, read as *selector* reports it.

    Raises OSError where it cannot be started; the error's filename is the program's or *workdir*.
    """

    def __init__(
        self,
        argv: Sequence[str],
        workdir: str,
        env: Mapping[str, str],
        selector: selectors.BaseSelector,
        write: Callable[[bytes], None],
    ) -> None:
        self._selector, self._write = selector, write
        hears, says = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - running the user's command is the job
                argv,
                cwd=workdir,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=says,
                stderr=says,
                start_new_session=True,
                umask=0o022,
            )
        except BaseException:
            os.close(hears)
            raise
        finally:
            os.close(says)
        os.set_blocking(hears, False)
        self._output: Optional[int] = hears
        selector.register(hears, selectors.EVENT_READ, self._on_output)

    @property
    def pid(self) -> int:
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send *number* to the main process alone."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the whole group; what left it by a session of its own is not ours."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def ended(self) -> Optional[int]:
        """Return Popen's code once the main process is over, the rest killed, its output taken."""
        code = self._process.poll()
        if code is not None:
            self.kill()
            while self._output is not None and self._on_output():
                pass
            self._close_output()
        return code

    def _on_output(self) -> bool:
        assert self._output is not None  # noqa: S101 - registered while it is open
        try:
            data = os.read(self._output, CHUNK)
        except BlockingIOError:
            return False
        if data:
            self._write(data)
        else:
            self._close_output()
        return bool(data)

    def _close_output(self) -> None:
        if self._output is not None:
            self._selector.unregister(self._output)
            os.close(self._output)
            self._output = None


def raise_descriptor_limit() -> None:
    """Allow this process and its children DESCRIPTORS open files, or as many as may be had."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
