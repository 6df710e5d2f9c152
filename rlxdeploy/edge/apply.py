"""Carry a Plan out: every touched host is STAGED before any host is told GO.

One exec a host.  Until GO a failure anywhere undoes everything everywhere; after GO each host goes
through its steps by itself, whether we still listen or not.  Then the hosts hold, until they are
told to CONFIRM or to REVERT; one that is told nothing is left to its revert timer.
"""

import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

from rlxdeploy.edge.frames import Frames
from rlxdeploy.edge.script import Script, Terms, compose
from rlxdeploy.edge.session import OpenSession, Session, SessionLost, framed
from rlxdeploy.errors import HostError, Locked, Refused, Unreachable
from rlxdeploy.model.files import HostFiles, RemoteFiles
from rlxdeploy.model.outcome import Outcomes
from rlxdeploy.model.plan import HostPlan, Plan
from rlxdeploy.model.step import Step

T = TypeVar("T")

# Hears of each host and what it has just done; called from several threads.
Tell = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds.  *stage* is for all hosts together, from the first connection to the last STAGED.

    *go* is for one host's steps, and for those of going back: a rank may take its stop timeout of
    30 s, and ten more pass before it is killed.  *hold* is how long a host keeps the lock for us
    while we watch the ranks join.
    *bye* is for a host to undo or unlock.
    """

    stage: float = 300.0
    go: float = 120.0
    hold: float = 3600.0
    bye: float = 15.0


@dataclass(frozen=True, slots=True)
class Manner:
    """How a plan is carried out.

    *by* is what others read in the lock, one line: who does what, from where.  *forks* hosts are
    worked on at once.  Before GO *max_fail* of the *spare* hosts may fail, and the others go on
    without them.
    """

    by: str
    forks: int = 32
    max_fail: int = 0
    spare: Collection[str] = ()
    patience: Patience = field(default_factory=Patience)
    tell: Tell = lambda _host, _what: None

    def goes_without(self, failed: Collection[str]) -> bool:
        """Tell whether the others go on although *failed* have failed before GO."""
        return len(failed) <= self.max_fail and all(name in self.spare for name in failed)

    def terms(self) -> Terms:
        """Return what one host is told, with a marker of its own."""
        # A host that began first waits for the slowest; our own deadline comes before its.
        stage_s = int(self.patience.stage) + 30
        return Terms(secrets.token_hex(16), self.by, stage_s, int(self.patience.hold))


@dataclass(frozen=True, slots=True)
class Back:
    """What a host has once it has gone back: a *release*, "" for none, and the ranks it started."""

    release: str
    ranks: tuple[int, ...]


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
    _deeds: tuple["_Deed", ...] = ()
    _pool: ThreadPoolExecutor | None = None

    def confirm(self) -> Outcomes[None]:
        """Have every host stay as it is, and do what waited for that."""
        return self._tell(_Deed.confirm)

    def revert(self) -> Outcomes["Back"]:
        """Have every host go back, and return what each has now."""
        return self._tell(_Deed.revert)

    def _tell(self, work: Callable[["_Deed"], T]) -> Outcomes[T]:
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
    up.  A host's failure is in the Outcomes; only bugs of ours and interrupts are raised.
    """
    contents: Mapping[str, HostFiles] = files.hosts if files else {}
    deeds = [
        _Deed(part, contents.get(name), open_session, manner)
        for name, part in plan.hosts.items()
        if not part.empty
    ]
    with ThreadPoolExecutor(max(1, min(manner.forks, len(deeds)))) as pool:
        try:
            yield _carry_out(deeds, pool, manner)
        finally:
            _each(pool, deeds, _Deed.dismiss, may_cancel=False)


def _carry_out(deeds: list["_Deed"], pool: ThreadPoolExecutor, manner: Manner) -> Carried:
    deadline = time.monotonic() + manner.patience.stage
    staged = _each(pool, deeds, lambda deed: deed.stage(deadline), may_cancel=True)
    if not staged.done or not manner.goes_without(staged.failed):
        _each(pool, deeds, _Deed.dismiss, may_cancel=False)
        return Carried(went=False, outcomes=Outcomes({}, staged.failed))
    ready = [deed for deed in deeds if deed.name in staged.done]
    sent = _each(pool, ready, _Deed.send_go, may_cancel=False)
    gone = [deed for deed in ready if deed.name in sent.done]
    went = _each(pool, gone, _Deed.finish, may_cancel=False)
    outcomes = Outcomes(went.done, {**staged.failed, **sent.failed, **went.failed})
    missed = frozenset(staged.failed)
    return Carried(went=True, outcomes=outcomes, missed=missed, _deeds=tuple(ready), _pool=pool)


def _each(
    pool: ThreadPoolExecutor,
    deeds: list["_Deed"],
    work: Callable[["_Deed"], T],
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


@dataclass(slots=True)
class _Deed:
    """One host's part on its way: opened, staged, gone, dismissed."""

    part: HostPlan
    files: HostFiles | None
    open_session: OpenSession
    manner: Manner
    _session: Session | None = None
    _frames: Frames | None = None
    _script: Script | None = None
    _ended: bool = False
    _gone: bool = False

    @property
    def name(self) -> str:
        return self.part.host.name

    def stage(self, deadline: float) -> None:
        """Bring the host to STAGED; raises HostError."""
        terms = self.manner.terms()
        self._script = compose(self.part, self.files, terms)
        self._session = self.open_session(self.part.host, deadline)
        self._frames = Frames(self._session, terms.marker)
        # A host that refuses ends its shell before it has read everything: it says why in a frame.
        with suppress(SessionLost):
            self._send(framed(self._script.text) + self._script.payload, deadline)
        word, text = self._next("stage", deadline)
        if word == "staged":
            self.manner.tell(self.name, "staged")
            return
        self._ended = True
        if word == "locked":
            remedy = "wait for it; a lock whose owner is gone is taken over by itself"
            raise Locked(self.name, "lock", f"held by {text}", remedy)
        raise Refused(self.name, "stage", text.partition(" ")[2] if word == "failed" else text)

    def send_go(self) -> None:
        """Tell the host to go through its steps; raises HostError."""
        self._gone = True
        self.manner.tell(self.name, "told to go")
        self._send(b"GO\n", time.monotonic() + self.manner.patience.bye)

    def finish(self) -> tuple[Step, ...]:
        """Return the steps once all are done; raises HostError naming the one that failed."""
        assert self._script is not None  # noqa: S101 - staged before
        deadline = time.monotonic() + self.manner.patience.go
        steps = self._script.steps
        self._hear(steps, 1, deadline)
        self._expect("over", "finish", deadline)
        self.manner.tell(self.name, "changed")
        return steps

    def confirm(self) -> None:
        """Have the host stay as it is; raises HostError."""
        assert self._script is not None  # noqa: S101 - staged before
        self._send(b"CONFIRM\n", time.monotonic() + self.manner.patience.bye)
        deadline = time.monotonic() + self.manner.patience.go
        self._hear(self._script.confirm, len(self._script.steps) + 1, deadline)
        self._expect("confirmed", "confirm", deadline)
        self.manner.tell(self.name, "confirmed")

    def revert(self) -> Back:
        """Have the host go back; raises HostError."""
        self._send(b"REVERT\n", time.monotonic() + self.manner.patience.bye)
        said = self._expect("reverted", "go back", time.monotonic() + self.manner.patience.go)
        self.manner.tell(self.name, "reverted")
        release, _, ranks = said.partition(" ")
        return Back(release, tuple(map(int, ranks.split())))

    def _hear(self, steps: tuple[Step, ...], first: int, deadline: float) -> None:
        for number, step in enumerate(steps, start=first):
            said = self._expect("done", str(step), deadline)
            assert said == str(number)  # noqa: S101 - a host counts as we do
            self.manner.tell(self.name, str(step))

    def _expect(self, wanted: str, doing: str, deadline: float) -> str:
        """Return what follows *wanted*; raises HostError with what was said in its place."""
        word, text = self._next(doing, deadline)
        if word != wanted:
            raise HostError(self.name, doing, text.partition(" ")[2] or text or word)
        return text

    def dismiss(self) -> None:
        """Have the host undo what was staged, or release the lock, and close; never raises."""
        session, self._session = self._session, None
        if session is None:
            return
        with session, suppress(TimeoutError, HostError):
            deadline = time.monotonic() + self.manner.patience.bye
            if not self._ended:
                session.send(b"BYE\n", deadline)
            while session.read(deadline):
                pass
            if not self._gone:
                self.manner.tell(self.name, "undone")

    def _send(self, data: bytes, deadline: float) -> None:
        if self._session is None or self._ended:
            raise Unreachable(self.name, "send", "its session has ended")
        try:
            self._session.send(data, deadline)
        except TimeoutError as error:
            raise Unreachable(self.name, "send", "it takes nothing more in time") from error

    def _next(self, doing: str, deadline: float) -> tuple[str, str]:
        assert self._frames is not None  # noqa: S101 - opened before
        assert self._session is not None  # noqa: S101 - opened before
        try:
            said = self._frames.next(deadline)
        except TimeoutError as error:
            raise HostError(self.name, doing, "no answer in time") from error
        if said is None:
            self._ended = True
            why = self._session.complaints.strip() or "the session ended without a word"
            raise HostError(self.name, doing, why)
        return said
