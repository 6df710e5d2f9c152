"""Carry a Plan out: every touched host is STAGED before any host is told GO.

One exec a host.  Until GO a failure anywhere undoes everything everywhere; after GO each host goes
through its steps by itself, whether we still listen or not.  Then the hosts hold, until they are
told to CONFIRM or to REVERT; one that is told nothing is left to its revert timer.  A session that
is lost after GO is taken up by another one, so that a broken connection alone undoes nothing.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from rlxdeploy.edge.deed import Back, Deed
from rlxdeploy.edge.manner import Manner, Patience
from rlxdeploy.edge.session import OpenSession
from rlxdeploy.errors import HostError, Locked
from rlxdeploy.model.files import HostFiles, RemoteFiles
from rlxdeploy.model.outcome import Outcomes
from rlxdeploy.model.plan import Plan
from rlxdeploy.model.step import Step

__all__ = ["Back", "Carried", "Manner", "Patience", "carried_out"]

T = TypeVar("T")

# Between two tries to lock a host that another apply is about to let go.
_PAUSE_S = 0.3


@dataclass(frozen=True, slots=True)
class Carried:
    """What came of a plan; without *went* no host was changed.

    *outcomes* has the steps that each touched host carried out, or why it failed.  Without *went*
    only the hosts at fault are in it.  *missed* are those among the failed that the others went
    without: nothing was changed on them.
    """

    went: bool
    outcomes: Outcomes[tuple[Step, ...]]
    missed: frozenset[str] = frozenset()
    _deeds: tuple[Deed, ...] = ()
    _pool: ThreadPoolExecutor | None = None

    def confirm(self) -> Outcomes[None]:
        """Have every host stay as it is, and do what waited for that."""
        return self._tell(Deed.confirm)

    def revert(self) -> Outcomes["Back"]:
        """Have every host go back, and return what each has now."""
        return self._tell(Deed.revert)

    def _tell(self, work: Callable[[Deed], T]) -> Outcomes[T]:
        if self._pool is None:
            return Outcomes({}, {})
        deeds = [deed for deed in self._deeds if deed.part.back]
        return _each(self._pool, deeds, work, may_cancel=False)


@contextmanager
def carried_out(
    plan: Plan, files: RemoteFiles | None, open_session: OpenSession, manner: Manner
) -> Iterator[Carried]:
    """Carry *plan* out and yield what came of it; the hosts stay locked until the block ends.

    *files* hold the contents that the plan names (None: it names none).  An interrupt before GO
    undoes what was staged, one after it waits for the hosts to finish their steps; then it goes on
    up.  A host's failure is in the Outcomes; only bugs of ours, interrupts and what the ledger
    raises are raised.
    """
    contents: Mapping[str, HostFiles] = files.hosts if files else {}
    deeds = [
        Deed(part, contents.get(name), open_session, manner)
        for name, part in plan.hosts.items()
        if not part.empty
    ]
    with ThreadPoolExecutor(max(1, min(manner.forks, len(deeds)))) as pool:
        try:
            with ExitStack() as going:
                yield _carry_out(deeds, pool, manner, going)
        finally:
            _each(pool, deeds, Deed.dismiss, may_cancel=False)


def _carry_out(
    deeds: list[Deed], pool: ThreadPoolExecutor, manner: Manner, going: ExitStack
) -> Carried:
    staged = _staged(deeds, pool, manner)
    if not staged.done or not manner.goes_without(staged.failed):
        _each(pool, deeds, Deed.dismiss, may_cancel=False)
        return Carried(went=False, outcomes=Outcomes({}, staged.failed))
    going.enter_context(manner.ledger)
    ready = [deed for deed in deeds if deed.name in staged.done]
    sent = _each(pool, ready, Deed.send_go, may_cancel=False)
    gone = [deed for deed in ready if deed.name in sent.done]
    went = _each(pool, gone, Deed.finish, may_cancel=False)
    outcomes = Outcomes(went.done, {**staged.failed, **sent.failed, **went.failed})
    missed = frozenset(staged.failed)
    return Carried(went=True, outcomes=outcomes, missed=missed, _deeds=tuple(ready), _pool=pool)


def _staged(deeds: list[Deed], pool: ThreadPoolExecutor, manner: Manner) -> Outcomes[None]:
    """Bring all to STAGED.

    Of two applies that begin at once each may lock some of the hosts: the one that has the first
    host tries the others again, and the one that has not gives way.
    """
    deadline = time.monotonic() + manner.patience.stage
    staged = _each(pool, deeds, lambda deed: deed.stage(deadline), may_cancel=True)
    until = min(deadline, time.monotonic() + manner.patience.rival)
    while _may_win(staged, deeds) and time.monotonic() < until:
        time.sleep(_PAUSE_S)
        held = [deed for deed in deeds if deed.name in staged.failed]
        again = _each(pool, held, lambda deed: deed.stage_again(deadline), may_cancel=True)
        staged = Outcomes({**staged.done, **again.done}, again.failed)
    return staged


def _may_win(staged: Outcomes[None], deeds: list[Deed]) -> bool:
    """Tell whether nothing is in the way but locks on other hosts than the first."""
    locked = all(isinstance(error, Locked) for error in staged.failed.values())
    return bool(staged.failed) and locked and min(deed.name for deed in deeds) in staged.done


def _each(
    pool: ThreadPoolExecutor,
    deeds: list[Deed],
    work: Callable[[Deed], T],
    *,
    may_cancel: bool,
) -> Outcomes[T]:
    """Do *work* for all; an interrupt waits for what has begun, or for all unless *may_cancel*."""
    futures: dict[str, Future[T]] = {deed.name: pool.submit(work, deed) for deed in deeds}
    try:
        wait(futures.values())
    except BaseException:
        for future in futures.values() if may_cancel else ():
            future.cancel()
        wait(futures.values())
        raise
    done: dict[str, T] = {}
    failed: dict[str, HostError] = {}
    for name, future in futures.items():
        try:
            done[name] = future.result()
        except HostError as error:
            failed[name] = error
    return Outcomes(done, failed)
