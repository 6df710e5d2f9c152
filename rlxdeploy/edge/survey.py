"""The survey: one exec a host, all questions at once, the answers as facts."""

import secrets
import threading
import time
from dataclasses import dataclass, field

from rlxdeploy.edge.pool import Pool
from rlxdeploy.edge.session import OpenSession, Session, framed
from rlxdeploy.errors import HostError, PasswordRefused, Refused, Unreachable
from rlxdeploy.facts import host as host_facts
from rlxdeploy.facts.question import AnswerError, Unanswered
from rlxdeploy.facts.script import Patience, Transcript, compose
from rlxdeploy.model.outcome import Outcomes
from rlxdeploy.model.survey import HostFacts, Survey
from rlxdeploy.model.targets import Target, Targets

DOING = "survey"
BECOME = "become root"


@dataclass(frozen=True, slots=True)
class SurveyLimits:
    """Bounds of a survey, in seconds and bytes; tests build tight ones."""

    # As many sessions at once as one sshd-friendly controller opens; `[ssh] forks`.
    at_once: int = 32
    # Opening a session: a jump host and a slow sshd each add seconds; `[ssh] connect_timeout`.
    opening: float = 10.0
    patience: Patience = field(default_factory=Patience)
    # The host's own deadline runs on its clock; so long may its end line be on the way.
    transit: float = 3.0
    # Ten thousand files of ours are 2 MiB; a host that says more is not answering our questions.
    answer_bytes: int = 32 << 20

    @property
    def allowance(self) -> float:
        """The time one host may take."""
        return self.opening + self.patience.whole + self.transit


def survey(
    targets: Targets,
    open_session: OpenSession,
    limits: SurveyLimits | None = None,
    stop: threading.Event | None = None,
) -> Survey:
    """Ask every target; a host that cannot be asked is in `failed` with its reason."""
    outcomes = survey_hosts(targets, open_session, limits, stop)
    return Survey(outcomes.done, {name: str(error) for name, error in outcomes.failed.items()})


def survey_hosts(
    targets: Targets,
    open_session: OpenSession,
    limits: SurveyLimits | None = None,
    stop: threading.Event | None = None,
) -> Outcomes[HostFacts]:
    """Ask every target; failures keep their class, so that the exit code can tell them apart."""
    limits = limits or SurveyLimits()

    def ask(target: Target, deadline: float) -> HostFacts:
        opened_by = min(deadline, time.monotonic() + limits.opening)
        with open_session(target.host, opened_by) as session:
            return survey_one(session, target, limits)

    pool = Pool(limits.at_once, limits.allowance, stop)
    return pool.on_hosts(ask, {target.host.name: target for target in targets.targets}, DOING)


def survey_one(session: Session, target: Target, limits: SurveyLimits) -> HostFacts:
    """Ask one host over *session* and return its facts.

    Raises Unreachable where nothing came back, nothing of what decisions rest on, or where the
    session ended midway; Refused where such an answer is not what it should be, PasswordRefused
    where sudo does not take the session's password.  Other questions that missed their deadline
    are named in `unanswered`.
    """
    questions = host_facts.questions(target.enquiry)
    marker = secrets.token_hex(16)
    transcript = Transcript(questions, marker)
    deadline = time.monotonic() + limits.patience.whole + limits.transit
    try:
        session.send(framed(compose(questions, marker, limits.patience)), deadline)
        _listen(session, transcript, deadline, limits.answer_bytes)
    except TimeoutError as error:
        if transcript.root == "?":
            raise PasswordRefused(session.host.name, BECOME, "sudo does not answer") from error
        if not transcript.begun:
            why = "the host's shell did not begin to answer in time"
            raise Unreachable(session.host.name, DOING, why) from error
    else:
        if not transcript.ended:
            said = session.complaints.strip() or "it said nothing"
            raise Unreachable(session.host.name, DOING, f"the host's shell ended: {said}")
    _, _, refusal = transcript.root.partition(" ")
    if refusal:
        remedy = "it was tried once; see that the password and sudoers are right"
        raise PasswordRefused(session.host.name, BECOME, refusal, remedy)
    try:
        return host_facts.parse(target.host, target.enquiry, transcript.answers())
    except Unanswered as error:
        raise Unreachable(session.host.name, DOING, str(error)) from error
    except AnswerError as error:
        raise Refused(session.host.name, DOING, str(error), error.remedy) from error


def _listen(session: Session, transcript: Transcript, deadline: float, most: int) -> None:
    """Feed *transcript* up to its end line or the end of the stream."""
    heard = 0
    while not transcript.ended and (piece := session.read(deadline)):
        heard += len(piece)
        if heard > most:
            raise HostError(session.host.name, DOING, f"the host said more than {most} bytes")
        transcript.feed(piece)
