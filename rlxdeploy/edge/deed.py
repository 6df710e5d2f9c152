"""One host's part of a plan, from its session's begin to its end, and past the loss of one.

After GO the host goes through its steps and holds, whether we listen or not.  So a session that is
lost then is taken up by another one: it ends the shell that waits in vain, tells what the steps
came to, and holds for the word in its place.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from rlxdeploy.edge.frames import Frames
from rlxdeploy.edge.manner import Manner
from rlxdeploy.edge.script import compose, compose_again
from rlxdeploy.edge.session import OpenSession, Session, SessionLost, framed
from rlxdeploy.errors import HostError, Locked, Overtaken, Refused, Unreachable, Untrusted
from rlxdeploy.model.files import HostFiles
from rlxdeploy.model.plan import HostPlan
from rlxdeploy.model.step import RestoreRelease, Step, SwitchRelease

T = TypeVar("T")

_AGAIN = "take up the lost session"
# Between two tries to reach a host that may just be coming up again.
_PAUSE_S = 0.5


class _Lost(HostError):
    """The session has ended, and the host has not said that it would."""


@dataclass(frozen=True, slots=True)
class Back:
    """What a host has once it has gone back: a *release*, "" for none, and the ranks it started."""

    release: str
    ranks: tuple[int, ...]


@dataclass(slots=True)
class Deed:
    """One host's part on its way: opened, staged, gone, dismissed."""

    part: HostPlan
    files: HostFiles | None
    open_session: OpenSession
    manner: Manner
    _session: Session | None = None
    _frames: Frames | None = None
    _marker: str = ""
    _ended: bool = False
    _gone: bool = False
    _steps_heard: bool = False
    _told: int = 0

    @property
    def name(self) -> str:
        return self.part.host.name

    def stage(self, deadline: float) -> None:
        """Bring the host to STAGED; raises HostError."""
        terms = self.manner.terms()
        self._marker = terms.marker
        script = compose(self.part, self.files, terms)
        self._session = self.open_session(self.part.host, deadline)
        self._frames = Frames(self._session, terms.marker)
        # A host that refuses ends its shell before it has read everything: it says why in a frame.
        with suppress(_Lost):
            self._send(framed(script.text) + script.payload, deadline)
        word, text = self._next("stage", deadline)
        if word == "staged":
            self.manner.tell(self.name, "staged")
            return
        self._ended = True
        if word == "locked":
            remedy = "wait for it; a lock whose owner is gone is taken over by itself"
            raise Locked(self.name, "lock", f"held by {text}", remedy)
        if word == "moved":
            raise Overtaken(self.name, "stage", text, "plan again")
        raise Refused(self.name, "stage", text.partition(" ")[2] if word == "failed" else text)

    def stage_again(self, deadline: float) -> None:
        """Do what `stage` does, after the host has refused."""
        self.dismiss()
        self._ended = False
        self.stage(deadline)

    def send_go(self) -> None:
        """Tell the host to go through its steps; whether it has heard that, `finish` finds out."""
        self._gone = True
        self.manner.tell(self.name, "told to go")
        with suppress(_Lost):
            self._say("GO")

    def finish(self) -> tuple[Step, ...]:
        """Return the steps once all are done; raises HostError naming the one that failed."""
        self._lasting(self._hear_steps, self._unheard)
        self.manner.tell(self.name, "changed")
        return self.part.go

    def confirm(self) -> None:
        """Have the host stay as it is; raises HostError."""
        self._lasting(self._confirm, self._has_stayed)
        self.manner.tell(self.name, "confirmed")

    def revert(self) -> Back:
        """Have the host go back; raises HostError."""
        back = self._lasting(self._revert, self._has_gone_back)
        self.manner.tell(self.name, "reverted")
        return back

    def _hear_steps(self) -> None:
        self._steps_heard = True
        deadline = time.monotonic() + self.manner.patience.go
        self._hear(self.part.go, 1, deadline)
        self._expect("over", "finish", deadline)

    def _confirm(self) -> None:
        self._hear_again()
        self._say("CONFIRM")
        deadline = time.monotonic() + self.manner.patience.go
        self._hear(self.part.confirm, len(self.part.go) + 1, deadline)
        self._expect("confirmed", "confirm", deadline)

    def _revert(self) -> Back:
        self._hear_again()
        self._say("REVERT")
        said = self._expect("reverted", "go back", time.monotonic() + self.manner.patience.go)
        release, _, ranks = said.partition(" ")
        return Back(release, tuple(map(int, ranks.split())))

    def _hear_again(self) -> None:
        """Hear what another session repeats; what became of the steps has been told before."""
        if not self._steps_heard:
            try:
                self._hear_steps()
            except _Lost:
                raise
            except HostError:
                return

    def _lasting(self, work: Callable[[], T], settled: Callable[[str], T]) -> T:
        """Do *work*, on another session where this one is lost over it.

        *settled* gets the release that stands on a host which has come to its end meanwhile.
        """
        deadline = time.monotonic() + self.manner.patience.again
        while True:
            try:
                return work()
            except _Lost as lost:
                if self.part.back is None:
                    raise
                stands = self._taken_up(lost, deadline)
                if stands is not None:
                    return settled(stands)

    def _taken_up(self, lost: "_Lost", deadline: float) -> str | None:
        """Open sessions until one takes the lost one's place; raises *lost* at the deadline.

        Returns what stands on the host where nothing is left to take up.
        """
        while True:
            try:
                return self._take_up(deadline)
            except (Untrusted, Refused, Locked):
                raise
            except HostError as error:
                if time.monotonic() + _PAUSE_S >= deadline:
                    raise lost from error
                time.sleep(_PAUSE_S)

    def _take_up(self, deadline: float) -> str | None:
        if self._session is not None:
            self._session.close()
        terms = self.manner.terms()
        script = compose_again(self.part, self._marker, terms)
        self._session = self.open_session(self.part.host, deadline)
        self._frames, self._ended = Frames(self._session, terms.marker), False
        self._send(framed(script), deadline)
        word, text = self._next(_AGAIN, deadline)
        if word == "taken":
            self._steps_heard = False
            return None
        self._ended = True
        if word == "settled":
            return text
        if word == "locked":
            raise Locked(self.name, _AGAIN, f"held by {text}")
        raise Refused(self.name, _AGAIN, text.partition(" ")[2] if word == "failed" else text)

    def _unheard(self, stands: str) -> None:
        why = f"the session was lost, and the host has {_release(stands)} by now"
        raise HostError(self.name, "finish", why)

    def _has_stayed(self, stands: str) -> None:
        if stands not in self._aims:
            why = f"the host has gone back to {_release(stands)} by itself"
            raise HostError(self.name, "confirm", why)

    def _has_gone_back(self, stands: str) -> Back:
        back = self.part.back
        if back is None or stands != back.release:
            raise HostError(self.name, "go back", f"the host stays at {_release(stands)}")
        return Back(stands, back.again)

    @property
    def _aims(self) -> tuple[str, ...]:
        """The release that the steps put in place; without one, whichever stands."""
        switches = (SwitchRelease, RestoreRelease)
        new = tuple(step.release for step in self.part.go if isinstance(step, switches))
        return new or ((self.part.back.release,) if self.part.back else ())

    def _hear(self, steps: tuple[Step, ...], first: int, deadline: float) -> None:
        for number, step in enumerate(steps, start=first):
            said = self._expect("done", str(step), deadline)
            assert said == str(number)  # noqa: S101 - a host counts as we do
            if number > self._told:
                self._told = number
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

    def _say(self, word: str) -> None:
        self._send(f"{word}\n".encode(), time.monotonic() + self.manner.patience.bye)

    def _send(self, data: bytes, deadline: float) -> None:
        if self._session is None or self._ended:
            raise _Lost(self.name, "send", "its session has ended")
        try:
            self._session.send(data, deadline)
        except SessionLost as error:
            raise _Lost(self.name, "send", error.why) from error
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
            raise _Lost(self.name, doing, why)
        return said


def _release(release: str) -> str:
    return f"release {release}" if release else "no release"
