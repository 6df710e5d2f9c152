"""How a rank is started, watched and restarted: the same numbers for units and the supervisor."""

from dataclasses import dataclass

from rlxdeploy.model.job import Job
from rlxdeploy.model.vocabulary import Ready

# A rank needs a moment to say READY after the group has joined.
_START_GRACE_S = 30.0

# The built-in node feeds the watchdog from a barrier of the whole group, which a busy group may
# delay; a minute is longer than any of its own waits for a lost peer.
_WATCHDOG_S = 60.0


@dataclass(frozen=True, slots=True)
class Service:
    """Effective settings of every rank's service; times in seconds, *watchdog* None for off.

    *restart_prevent* are exit codes that a new start would only repeat: usage, data or
    configuration at fault (sysexits.h 64, 65, 78).
    """

    ready: str
    restart: str
    join_timeout: float
    watchdog: float | None
    restart_after: int = 2
    start_limit_interval: int = 60
    start_limit_burst: int = 20
    restart_prevent: tuple[int, ...] = (64, 65, 78)
    stop_timeout: float = 30.0

    @property
    def notify(self) -> bool:
        return self.ready == Ready.NOTIFY

    @property
    def start_timeout(self) -> float:
        return self.join_timeout + _START_GRACE_S


def service_of(job: Job) -> Service:
    """Return what *job* asks for, its defaults settled."""
    ready = job.effective_ready
    watched = job.is_builtin and ready is Ready.NOTIFY
    return Service(
        ready=ready.value,
        restart=job.restart.value,
        join_timeout=job.join_timeout,
        watchdog=max(_WATCHDOG_S, 3 * job.peer_timeout) if watched else None,
    )
