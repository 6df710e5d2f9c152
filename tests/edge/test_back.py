"""The way back on one host: told to, by the timer, and not once all ranks have joined."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rlxdeploy.edge.apply import Back, Carried, Manner, carried_out
from rlxdeploy.model.files import RemoteFile, RemoteFiles
from rlxdeploy.model.plan import Plan, WayBack
from rlxdeploy.model.step import PruneReleases, RemoveJob, RestoreRelease, StartRanks, StopRanks
from tests.edge.deployment import QUICK, Lab, alive, listing

PATIENCE_S = 60.0
SOON_S, NEVER_S = 1, 600
# Is READY the first time it is started, and never again.
ONCE_READY = """
import os, socket, sys, time
if not os.path.exists(sys.argv[1]):
    open(sys.argv[1], "x").close()
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
time.sleep(600)
"""
FAILING = (sys.executable, "-c", "raise SystemExit(3)")


def with_way_back(plan: Plan, back: WayBack) -> Plan:
    return replace(
        plan, hosts={name: replace(part, back=back) for name, part in plan.hosts.items()}
    )


def applied(
    lab: Lab,
    files: RemoteFiles,
    then: Callable[[Carried], object] = lambda _carried: None,
    *,
    after_s: int = NEVER_S,
    release: str = "",
) -> object:
    """Apply with a way back to *release*; return what *then* makes of the hosts that hold."""
    back = WayBack(after_s, (0,), "", notify=False, release=release, again=(0,) if release else ())
    plan = with_way_back(lab.apply_plan(files), back)
    with carried_out(plan, files, lab.open_session, Manner("ann", patience=QUICK)) as carried:
        assert not carried.outcomes.failed
        return then(carried)


def confirmed(carried: Carried) -> object:
    assert carried.confirm().failed == {}
    return None


def reverted(carried: Carried) -> object:
    return dict(carried.revert().required())


def with_installed(lab: Lab, release: str, contents: dict[str, bytes]) -> RemoteFiles:
    files = lab.files(release)
    installed = tuple(
        RemoteFile(str(lab.folder / "srv" / name), content, 0o640, "test")
        for name, content in contents.items()
    )
    return replace(files, hosts={lab.name: replace(files.hosts[lab.name], installed=installed)})


def until(ask: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not ask():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def state(lab: Lab) -> tuple[str, bool, bool]:
    """Return what `current` is, whether a rank of it runs, and whether a way back is open."""
    current = (lab.home / "current").resolve().name
    record = lab.record()
    runs = alive(record["pid"]) if record["pid"] else False
    return current, runs and record["release"] == current, (lab.home / ".revert").exists()


def srv(lab: Lab) -> dict[str, bytes]:
    folder = lab.folder / "srv"
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_confirmed_release_leaves_nothing_that_waits(lab: Lab) -> None:
    """No way back is open, no process is left waiting, and the lock is free."""
    applied(lab, lab.files("r1"), confirmed)
    timers = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)

    assert state(lab) == ("r1", True, False)
    assert str(lab.home / ".revert") not in timers.stdout
    assert not (lab.home / "lock").exists()


def test_a_host_that_is_told_goes_back_to_the_release_before(lab: Lab) -> None:
    """The old ranks run from the old release, the new release and its files are gone."""
    applied(lab, with_installed(lab, "r1", {"kept": b"1", "dropped": b"1"}), confirmed)
    before = srv(lab)
    said = applied(
        lab, with_installed(lab, "r2", {"kept": b"2", "new": b"2"}), reverted, release="r1"
    )

    assert said == {lab.name: Back("r1", (0,))}
    assert state(lab) == ("r1", True, False)
    assert srv(lab) == before
    assert [path.name for path in (lab.home / "releases").iterdir()] == ["r1"]


def test_the_first_apply_goes_back_to_nothing(lab: Lab) -> None:
    """Of a first release that did not join nothing is left, and what it replaced is there again."""
    (lab.folder / "srv").mkdir()
    (lab.folder / "srv" / "mine").write_bytes(b"precious")
    before = listing(lab.folder).keys()
    said = applied(lab, with_installed(lab, "r1", {"mine": b"1", "new": b"1"}), reverted)

    assert said == {lab.name: Back("", ())}
    assert listing(lab.folder).keys() == before
    assert srv(lab) == {"mine": b"precious"}


def test_nobody_confirms_and_the_host_goes_back(lab: Lab) -> None:
    """The timer needs no controller: a release whose rank does not live is taken back."""
    applied(lab, lab.files("r1"), confirmed)
    applied(lab, lab.files("r2", FAILING), after_s=SOON_S, release="r1")

    until(lambda: state(lab) == ("r1", True, False))
    until(lambda: not (lab.home / "lock").exists())


def test_nobody_confirms_and_a_joined_release_stays(lab: Lab) -> None:
    """The host looks at itself first: all its ranks are READY, so that it keeps the release."""
    applied(lab, lab.files("r1"), confirmed)
    # A supervisor calls a rank ready that has lived for five seconds.
    applied(lab, lab.files("r2"), after_s=12, release="r1")

    until(lambda: not (lab.home / ".revert").exists())
    assert state(lab) == ("r2", True, False)


def deserted(lab: Lab, plan: Plan, files: RemoteFiles | None = None, release: str = "") -> None:
    """Carry *plan* out for ranks that say READY, and tell the host nothing after GO."""
    plan = with_way_back(plan, WayBack(NEVER_S, (0,), "", notify=True, release=release))
    with carried_out(plan, files, lab.open_session, Manner("ann", patience=QUICK)) as carried:
        assert not carried.outcomes.failed


def lost_after_ready(lab: Lab) -> None:
    """Have rank 0 killed once it is READY, and wait until it runs again, without a word."""
    until(lambda: lab.record()["ready"])
    os.kill(lab.record()["pid"], signal.SIGKILL)
    until(lambda: lab.record()["restarts"] == 1 and lab.record()["pid"])
    assert (lab.record()["active"], lab.record()["ready"]) == ("activating", False)


def decided(lab: Lab) -> str:
    """Return what the host says of its ranks when its timer fires, which is now."""
    script = [*lab.shell, str(lab.home / ".revert" / "back.sh")]
    run = subprocess.run(script, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return run.stdout.strip()


def test_a_rank_that_was_ready_since_go_has_joined(lab: Lab) -> None:
    """One that is just starting again counts: READY is said by all ranks, so all hosts stay.

    What it said before GO does not count, nor what an older supervisor does not keep.
    """
    marks = [lab.folder / "first", lab.folder / "second"]
    first, second = (
        lab.files("r1", (sys.executable, "-c", ONCE_READY, str(mark)), ready="notify")
        for mark in marks
    )
    deserted(lab, lab.apply_plan(first), first)
    lost_after_ready(lab)
    file = Path(lab.tree.supervisor_file(0))
    file.write_text(json.dumps({**lab.record(), "joined": ""}) + "\n", encoding="utf-8")
    assert decided(lab) == "going back from release r1 to release"

    deserted(lab, lab.apply_plan(second), second)
    lost_after_ready(lab)
    assert decided(lab) == "all ranks are up: release r1 stays"

    deserted(lab, lab.plan((), (PruneReleases(3),)), release="r1")
    assert decided(lab) == "going back from release r1 to release r1"


def test_a_release_that_has_finished_stays_until_it_is_stopped(lab: Lab) -> None:
    """The host takes a program that ended well for one that came up; a stop is no longer its end.

    So an apply after the stop runs it again, and without a stop does not.
    """
    applied(lab, lab.files("r1", ("/bin/true",)), after_s=3)
    until(lambda: not (lab.home / ".revert").exists())
    finished = lab.record()
    assert (state(lab)[0], finished["active"], finished["exit_status"]) == ("r1", "exited", 0)

    lab.carry_out(lab.plan((), (StopRanks((0,)),)))
    assert lab.record() == {**finished, "active": "inactive"}


def test_a_controller_that_hangs_is_not_waited_for(lab: Lab) -> None:
    """The timer takes the lock from the very apply that it belongs to."""
    applied(lab, lab.files("r1"), confirmed)

    def hang(_carried: Carried) -> object:
        until(lambda: state(lab)[0] == "r1")
        return None

    applied(lab, lab.files("r2", FAILING), hang, after_s=SOON_S, release="r1")
    until(lambda: state(lab) == ("r1", True, False))


def test_a_controller_that_is_silent_loses_the_lock(lab: Lab) -> None:
    """Stopped, say, with its wire open: the host holds for its lease, and then for nobody.

    It takes nothing back before its timer, and lets the controller that wakes up confirm.
    """
    files = lab.files("r1")
    plan = with_way_back(lab.apply_plan(files), WayBack(NEVER_S, (0,), "", notify=False))
    manner = Manner("ann", patience=replace(QUICK, hold=2))
    with carried_out(plan, files, lab.open_session, manner) as carried:
        until(lambda: not (lab.home / "lock").exists())
        assert state(lab) == ("r1", True, True)
        assert carried.confirm().failed == {}
    assert state(lab) == ("r1", True, False)


def test_an_apply_over_an_unconfirmed_one_goes_back_to_the_confirmed_one(lab: Lab) -> None:
    """Two releases that nobody confirmed are both taken back, whichever fails."""
    applied(lab, with_installed(lab, "r1", {"a": b"1"}), confirmed)
    applied(lab, with_installed(lab, "r2", {"a": b"2"}), release="r1")
    said = applied(lab, with_installed(lab, "r3", {"b": b"3"}), reverted, release="r1")

    assert said == {lab.name: Back("r1", (0,))}
    assert state(lab) == ("r1", True, False)
    assert srv(lab) == {"a": b"1"}
    assert [path.name for path in (lab.home / "releases").iterdir()] == ["r1"]


def test_a_stop_closes_the_way_back(lab: Lab) -> None:
    """Whoever stops a job wants it stopped: the timer does not start it again."""
    applied(lab, lab.files("r1"), confirmed)
    applied(lab, lab.files("r2"), release="r1")
    lab.carry_out(lab.plan((), (StopRanks((0,)),)))

    assert not (lab.home / ".revert").exists()
    assert not alive(lab.record()["pid"] or 1 << 30)


def test_a_step_that_fails_can_be_gone_back_from(lab: Lab) -> None:
    """After GO a host that could not do a step holds, and is told to go back like the others."""
    applied(lab, lab.files("r1"), confirmed)
    files = lab.files("r2")
    plan = lab.apply_plan(files)
    part = plan.hosts[lab.name]
    starts = next(step for step in part.go if isinstance(step, StartRanks))
    broken = replace(starts, supervisor=("/bin/false",))
    go = tuple(broken if step is starts else step for step in part.go)
    back = WayBack(NEVER_S, (0,), "", notify=False, release="r1", again=(0,))
    plan = replace(plan, hosts={lab.name: replace(part, go=go, back=back)})
    with carried_out(plan, files, lab.open_session, Manner("ann", patience=QUICK)) as carried:
        assert carried.outcomes.failed[lab.name].doing == str(broken)
        assert carried.revert().required() == {lab.name: Back("r1", (0,))}

    assert state(lab) == ("r1", True, False)


def test_steps_that_wait_for_the_others_wait(lab: Lab) -> None:
    """What is removed for good is removed after the word that the group has formed."""
    applied(lab, lab.files("r1"), confirmed)
    plan = lab.plan((), (StopRanks((0,), disable=True),))
    back = WayBack(NEVER_S, (), "", notify=False, release="r1", again=(0,))
    part = replace(plan.hosts[lab.name], confirm=(RemoveJob(),), back=back)
    plan = replace(plan, hosts={lab.name: part})
    with carried_out(plan, None, lab.open_session, Manner("ann", patience=QUICK)) as carried:
        assert state(lab)[:2] == ("r1", False)
        assert carried.revert().failed == {}
    assert state(lab) == ("r1", True, False)
    with carried_out(plan, None, lab.open_session, Manner("ann", patience=QUICK)) as carried:
        assert carried.confirm().failed == {}
    assert not lab.home.exists()


def test_a_host_that_is_left_starts_nothing_alone(lab: Lab) -> None:
    """Nobody says whether the others stay: only a rank that waits for its group starts again."""
    applied(lab, lab.files("r1"), confirmed)
    plan = lab.plan((), (StopRanks((0,), disable=True),))
    for waits in (False, True):
        back = WayBack(SOON_S, (), "", notify=waits, release="r1", again=(0,))
        part = replace(plan.hosts[lab.name], confirm=(RemoveJob(),), back=back)
        manner = Manner("ann", patience=QUICK)
        left = replace(plan, hosts={lab.name: part})
        with carried_out(left, None, lab.open_session, manner) as carried:
            assert carried.outcomes.failed == {}
        until(lambda: not (lab.home / ".revert").exists())
        assert state(lab) == ("r1", waits, False)


def test_an_earlier_release_is_restored_with_its_files(lab: Lab) -> None:
    """What it had outside of its folder comes back from what was kept of it."""
    applied(lab, with_installed(lab, "r1", {"a": b"1"}), confirmed)
    applied(lab, with_installed(lab, "r2", {"b": b"2"}), confirmed, release="r1")
    applied(lab, with_installed(lab, "r3", {"c": b"3"}), confirmed, release="r2")
    go = (StopRanks((0,)), RestoreRelease("r1"), StartRanks((0,), boot=False, release="r1"))
    back = WayBack(NEVER_S, (0,), "", notify=False, release="r3", again=(0,))
    plan = with_way_back(lab.plan((), go), back)
    with carried_out(plan, None, lab.open_session, Manner("ann", patience=QUICK)) as carried:
        assert carried.outcomes.failed == {}
        confirmed(carried)

    assert state(lab) == ("r1", True, False)
    assert srv(lab) == {"a": b"1"}


def test_a_way_back_survives_the_death_of_the_hosts_shell(lab: Lab) -> None:
    """Nobody holds the lock any more, and the timer goes back all the same."""
    applied(lab, lab.files("r1"), confirmed)

    def die(_carried: Carried) -> object:
        lock = (lab.home / "lock").read_text(encoding="utf-8")
        pid = next(line for line in lock.splitlines() if line.startswith("pid="))
        os.kill(int(pid.removeprefix("pid=")), signal.SIGKILL)
        return None

    applied(lab, lab.files("r2", FAILING), die, after_s=SOON_S, release="r1")
    until(lambda: state(lab) == ("r1", True, False))
