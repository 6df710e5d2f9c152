"""The preflight of an apply: every link of the group-to-be is tried before anything is changed."""

import time
from collections.abc import Mapping
from pathlib import Path

from rlxdeploy.app.lab import Lab
from rlxdeploy.app.plan import Planned
from rlxdeploy.app.run import Run
from rlxdeploy.app.say import Doing, Say
from rlxdeploy.edge.holders import holders_of
from rlxdeploy.edge.pool import Pool
from rlxdeploy.edge.preflight import PreflightLimits, Tell, preflighting
from rlxdeploy.edge.record import read_record
from rlxdeploy.errors import Locked
from rlxdeploy.model.outcome import Outcomes
from rlxdeploy.model.preflight import How, Matrix, Posted, Preflight, Trial
from rlxdeploy.model.survey import PortHolder
from rlxdeploy.model.targets import Enquiry
from rlxdeploy.model.vocabulary import Become
from rlxdeploy.plan.matrix import calls, judged, rivals, taken
from rlxdeploy.plan.preflight import preflight

STAGE = "preflight"
_ASKING_S = 30.0
# A preflight is over within seconds, and its apply has the lock then.
_RIVAL_S = 20.0
_PAUSE_S = 0.3
_AGAIN = "wait for it"


def checked(planned: Planned, lab: Lab, say: Say, run: Run) -> Matrix:
    """Try the links that *planned* calls for, and write down how long that took.

    Nothing is changed on any host; a host that cannot be asked proves nothing, and is left to the
    stage that comes next.  Raises RecordError, and Locked where another apply does so now.
    """
    loaded = planned.compiled.loaded
    record = read_record(Path(loaded.path), loaded.job)
    compiled = planned.compiled
    wanted = preflight(planned.plan, compiled.resolution, compiled.survey, record)
    if not wanted.trials:
        run.stage(f"{STAGE} skipped", why=wanted.why_not)
        return judged(wanted, {}, {}, {}, 0.0)
    run.stage(STAGE, links=len(wanted.links))
    began = time.monotonic()
    matrix = _tried(wanted, planned, lab, say, f"{planned.plan.job}: {run.by}")
    seconds = round(time.monotonic() - began, 3)
    how = "ok" if matrix.ok else "failed"
    run.stage(f"{STAGE} {how}", seconds=seconds, answered=matrix.count(How.ANSWERED))
    return matrix


def _tried(wanted: Preflight, planned: Planned, lab: Lab, say: Say, whose: str) -> Matrix:
    """Try the links, again where another preflight is in the way of it; raises Locked.

    Of two that begin at once each may get some of the ports: the one that has the lowest rank's
    tries again, and the one that has not gives way.
    """
    until = time.monotonic() + _RIVAL_S
    while True:
        matrix, others = _tried_once(wanted, planned, lab, say, whose)
        if not others or time.monotonic() >= until:
            return matrix
        name, holder = others.get(_first(wanted), ("", None))
        if holder is not None:
            raise Locked(name, STAGE, f"another apply is trying the links: {holder}", _AGAIN)
        time.sleep(_PAUSE_S)


def _first(wanted: Preflight) -> int:
    return min(post.rank for trial in wanted.trials.values() for post in trial.posts)


def _tried_once(
    wanted: Preflight, planned: Planned, lab: Lab, say: Say, whose: str
) -> tuple[Matrix, Mapping[int, tuple[str, PortHolder | None]]]:
    """Return what came of it, and in which ranks' places another preflight listens."""
    began = time.monotonic()
    limits = PreflightLimits(at_once=lab.forks, opening=lab.limits.opening, whose=whose)
    tell = _telling(wanted, say)
    with preflighting(wanted.trials, lab.open_session, limits, lab.stop, tell) as hosts:
        posted = _posted(hosts.listen())
        answers = hosts.call(calls(wanted, posted))
    seconds = time.monotonic() - began
    holders = _asked(wanted, taken(wanted, posted), planned, lab)
    matrix = judged(wanted, posted, answers, holders, seconds)
    return matrix, rivals(wanted, posted, holders)


def _posted(outcomes: Outcomes[Posted]) -> Mapping[str, Posted]:
    silent = {name: Posted(bare=error.why) for name, error in outcomes.failed.items()}
    return {**outcomes.done, **silent}


def _asked(
    wanted: Preflight, ports: Mapping[str, tuple[int, ...]], planned: Planned, lab: Lab
) -> Mapping[str, tuple[PortHolder, ...]]:
    """Return who holds *ports*, as each host says."""
    loaded = planned.compiled.loaded
    sudo = loaded.inventory.ssh.become is not Become.NONE

    def ask(trial: Trial, _deadline: float) -> tuple[PortHolder, ...]:
        enquiry = Enquiry(loaded.job, ports=ports[trial.host.name], sudo=sudo)
        return holders_of(trial.host, enquiry, lab.open_session)

    trials = {name: wanted.trials[name] for name in ports}
    return Pool(lab.forks, _ASKING_S).on_hosts(ask, trials, STAGE).done


def _telling(wanted: Preflight, say: Say) -> Tell:
    total = len(wanted.trials)
    waiting = dict.fromkeys(wanted.trials)
    say(Doing(STAGE, 0, total, tuple(waiting)))

    def tell(host: str, what: str) -> None:
        if what == "listening":
            waiting.pop(host, None)
            say(Doing(STAGE, total - len(waiting), total, tuple(waiting)))

    return tell
