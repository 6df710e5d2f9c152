"""The preflight on the hosts: listeners on all of them, then calls from all of them, one exec each.

Nothing is written anywhere.  A listener ends with its session, with the controller, and by itself
after `life` seconds, whichever comes first.
"""

import json
import secrets
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from rlxdeploy.edge.frames import Frames
from rlxdeploy.edge.pool import Pool
from rlxdeploy.edge.session import OpenSession, Session, SessionLost, framed
from rlxdeploy.errors import HostError
from rlxdeploy.model.outcome import Outcomes
from rlxdeploy.model.preflight import Found, How, Link, Posted, Trial
from rlxdeploy.model.survey import PREFLIGHT

DOING = "preflight"
_BARE = "it has no python3, so nobody listens or dials there"
_PROBE = Path(__file__).with_name("peerprobe.py")

# The program comes by a pipe, so descriptor 3 is what is left of the session's stdin.
_SCRIPT = """\
exec 3<&0
python=
for one in {pythons}; do
  if command -v "$one" >/dev/null 2>&1; then python=$one; break; fi
done
[ -n "$python" ] || {{ printf '\\n%s bare\\n' {marker}; exit 0; }}
printf %s {program} | "$python" -I - {sign}
"""

# Hears of each host and how far it has come; called from several threads.
Tell = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class PreflightLimits:
    """Seconds, how many hosts at once, and whose the listeners are, as their processes show."""

    at_once: int = 32
    # To open a session where there is none yet; `[ssh] connect_timeout`.
    opening: float = 30.0
    # Python starts in tens of milliseconds, on a host deep in swap in seconds.
    start: float = 20.0
    # A lost SYN is sent again after one second, and once more after three.
    dial: float = 3.5
    # The listeners are one loop a host, and may all be called at the same moment.
    answer: float = 5.0
    # What is left of the deadlines once all are added up, for answers that are on their way.
    transit: float = 3.0
    whose: str = ""

    @property
    def calling(self) -> float:
        """The time in which all calls of one host are decided."""
        return self.dial + self.answer + self.transit

    def life(self, hosts: int) -> int:
        """When a listener ends by itself: after the slowest host has begun and all have called.

        Hosts beyond *at_once* wait for their turn to begin, to call and to be heard out.
        """
        turns = -(-hosts // self.at_once)
        return int(turns * (self.opening + self.start + 2 * self.calling)) + 30


class _Word(BaseModel):
    """What the probe says of one place, or of one call."""

    model_config = ConfigDict(frozen=True)

    how: How
    detail: str = ""
    rank: int = -1
    n: int = -1


@dataclass(slots=True)
class Preflighting:
    """The hosts of one preflight, their listeners up from `listen` until the end."""

    trials: Mapping[str, Trial]
    open_session: OpenSession
    limits: PreflightLimits
    stop: threading.Event | None
    tell: Tell
    _talks: dict[str, "_Talk"] = field(default_factory=dict)

    def listen(self) -> Outcomes[Posted]:
        """Have somebody listen at every post; a host that cannot be reached is a failure."""
        token = secrets.token_hex(16)
        for name, trial in self.trials.items():
            self._talks[name] = _Talk(trial, self.limits, token, self.limits.life(len(self.trials)))
        limit = self.limits.opening + self.limits.start
        pool = Pool(self.limits.at_once, limit, self.stop)
        return pool.on_hosts(self._listen, self._talks, DOING)

    def call(self, calls: Mapping[str, tuple[Link, ...]]) -> Mapping[Link, Found]:
        """Have every host make its *calls*, all at once; what a host did not say is left out."""
        pool = Pool(self.limits.at_once, self.limits.calling)
        talks = {name: (self._talks[name], links) for name, links in calls.items()}
        pool.on_hosts(lambda one, deadline: one[0].call(one[1], deadline), talks, DOING)
        pool.on_hosts(self._hear_out, {name: one for name, (one, _) in talks.items()}, DOING)
        return {link: found for talk, _ in talks.values() for link, found in talk.heard()}

    def close(self) -> None:
        """Hang up, which ends every listener."""
        for talk in self._talks.values():
            talk.close()

    def _listen(self, talk: "_Talk", deadline: float) -> Posted:
        posted = talk.listen(self.open_session, deadline)
        self.tell(talk.name, "listening")
        return posted

    def _hear_out(self, talk: "_Talk", deadline: float) -> None:
        talk.hear_out(deadline)
        self.tell(talk.name, "done")


@contextmanager
def preflighting(
    trials: Mapping[str, Trial],
    open_session: OpenSession,
    limits: PreflightLimits,
    stop: threading.Event | None = None,
    tell: Tell = lambda _host, _what: None,
) -> Iterator[Preflighting]:
    """Yield the hosts of *trials*, to `listen` and to `call`; all listeners end with the block."""
    hosts = Preflighting(trials, open_session, limits, stop, tell)
    try:
        yield hosts
    finally:
        hosts.close()


@dataclass(slots=True)
class _Talk:
    """One host and its probe."""

    trial: Trial
    limits: PreflightLimits
    token: str
    life: int
    marker: str = field(default_factory=lambda: secrets.token_hex(16))
    _closed: bool = False
    _session: Session | None = None
    _frames: Frames | None = None
    _links: tuple[Link, ...] = ()
    _found: dict[int, Found] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.trial.host.name

    def listen(self, open_session: OpenSession, deadline: float) -> Posted:
        """Start the probe; a host without a Python that runs it is bare.  Raises HostError."""
        self._session = session = open_session(self.trial.host, deadline)
        if self._closed:
            self.close()
        self._frames = Frames(session, self.marker)
        failed: dict[int, Found] = {}
        try:
            session.send(self._opening(), deadline)
            while said := self._frames.next(deadline):
                match said:
                    case "ready", _:
                        return Posted(failed)
                    case "bare", _:
                        return Posted(bare=_BARE)
                    case "post", text:
                        word = _read(text)
                        failed[word.rank] = Found(word.how, word.detail)
        except (TimeoutError, SessionLost, ValidationError) as error:
            return Posted(bare=f"its Python is of no use: {error}")
        why = session.complaints.strip().splitlines() or ["it ended without a word"]
        return Posted(bare=f"its Python is of no use: {why[-1]}")

    def call(self, links: tuple[Link, ...], deadline: float) -> None:
        """Have the host dial; what cannot be sent is not heard of either."""
        assert self._session is not None  # noqa: S101 - nobody calls who does not listen
        self._links = links
        calls = [
            (number, link.listener, link.to.address, link.to.port, link.ours)
            for number, link in enumerate(links)
        ]
        with suppress(HostError, TimeoutError):
            self._session.send(json.dumps({"calls": calls}).encode() + b"\n", deadline)

    def hear_out(self, deadline: float) -> None:
        """Take in what comes of the calls, until all have been answered for."""
        assert self._frames is not None  # noqa: S101 - as above
        with suppress(TimeoutError, ValidationError):
            while len(self._found) < len(self._links) and (said := self._frames.next(deadline)):
                word = _read(said[1])
                self._found[word.n] = Found(word.how, word.detail)

    def heard(self) -> Iterator[tuple[Link, Found]]:
        """Yield what was heard of each call."""
        for number, link in enumerate(self._links):
            if (found := self._found.get(number)) is not None:
                yield link, found

    def close(self) -> None:
        """Hang up, now or as soon as there is a session."""
        self._closed = True
        if self._session is not None:
            self._session.close()

    def _opening(self) -> bytes:
        pythons = dict.fromkeys(filter(None, (self.trial.python, "python3")))
        script = _SCRIPT.format(
            pythons=shlex.join(pythons),
            program=shlex.quote(_PROBE.read_text(encoding="utf-8")),
            marker=self.marker,
            sign=shlex.join((PREFLIGHT, *self.limits.whose.split())),
        )
        orders = {
            "marker": self.marker,
            "token": self.token,
            "posts": [(post.rank, post.at.address, post.at.port) for post in self.trial.posts],
            "life_s": self.life,
            "dial_s": self.limits.dial,
            "answer_s": self.limits.answer,
        }
        return framed(script) + json.dumps(orders).encode() + b"\n"


def _read(text: str) -> _Word:
    return _Word.model_validate_json(text)
