"""Waiting for ranks that real supervisors run, and reading their logs."""

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rlxdeploy.edge.logs import LogQuery, follow_log, read_log
from rlxdeploy.edge.rankfeed import FeedLimits
from rlxdeploy.edge.watch import WatchLimits, Wish, watch
from rlxdeploy.facts.script import Patience
from rlxdeploy.model.host import Host
from tests.edge.deployment import Lab
from tests.runtime.cluster import fresh_host

FEW = 2.0


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    (tmp_path / "runtime").mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    one = Lab(tmp_path)
    yield one
    one.carry_out(one.destroy_plan((0, 1)))


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_a_command_that_dies_at_once_ends_the_wait(lab: Lab) -> None:
    """The wait names rank, host and address, how it ended, and its last lines; it is not late."""
    files = lab.files("r1", python("print('no such model', flush=True); exit(3)"))
    plan = lab.apply_plan(files)
    lab.carry_out(plan, files)
    start = time.monotonic()
    seen = watch(plan, lab.open_session)

    assert time.monotonic() - start < 10
    assert (seen.ok, seen.late) == (False, False)
    assert str(seen.blamed[0]).startswith("rank 0 on local at 127.0.0.1:29500: ended with exit 3")
    assert "no such model" in seen.blamed[0].log


def test_a_command_that_lives_is_ready(lab: Lab) -> None:
    """Under exec the wait ends well once every process has lived five seconds."""
    files = lab.files("r1", ranks=(0, 1))
    plan = lab.apply_plan(files, (0, 1))
    lab.carry_out(plan, files)
    seen = watch(plan, lab.open_session)

    assert (seen.ok, seen.blamed) == (True, ())
    assert seen.waited >= 4
    assert sorted(seen.ranks) == [0, 1]


def test_a_rank_that_comes_back_is_waited_for(lab: Lab) -> None:
    """Exit 75 is no failure: the wait goes on to its deadline and says what it lacked."""
    files = lab.files("r1", python("exit(75)"), restart_s=0.3)
    plan = lab.apply_plan(files)
    lab.carry_out(plan, files)
    seen = watch(plan, lab.open_session, Wish(timeout=FEW))

    assert (seen.ok, seen.late) == (False, True)
    assert f"not READY after {FEW:g} s" in seen.blamed[0].why


SLOW_ONCE = """\
#!/bin/sh
[ -e {met} ] && exec {real} "$@"
: >{met}
sleep 600
"""


def test_a_look_that_hangs_is_taken_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host busy with its ranks may miss a deadline: the wait goes on, and sees the end."""
    files = lab.files("r1", python("import time; time.sleep(0.5)"))
    plan = lab.apply_plan(files)
    lab.carry_out(plan, files)
    tools, met = lab.folder / "tools", lab.folder / "met"
    tools.mkdir()
    (tools / "sed").write_text(SLOW_ONCE.format(met=met, real=shutil.which("sed")))
    (tools / "sed").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    limits = WatchLimits(again=0.1, feed=FeedLimits(look=Patience(quick=2.0, slow=2.0)))
    seen = watch(plan, lab.open_session, Wish(finished=True, timeout=60), limits)

    assert met.exists()
    assert seen.ok


def test_a_rank_that_ends_well_is_finished(lab: Lab) -> None:
    """Exit 0 within the join is finished, and `finished` waits for just that."""
    files = lab.files("r1", python("import time; time.sleep(0.5)"))
    plan = lab.apply_plan(files)
    lab.carry_out(plan, files)
    seen = watch(plan, lab.open_session, Wish(finished=True, timeout=20))

    assert seen.ok
    assert seen.ranks[0].exit_status == 0


def test_a_host_without_an_answer_is_named(lab: Lab) -> None:
    """Nothing running and nothing said: the deadline names the rank all the same."""
    seen = watch(lab.destroy_plan(), lab.open_session, Wish(timeout=FEW))

    assert not seen.ok
    assert seen.blamed[0].why == f"nothing was seen of it in {FEW:g} s"


def test_a_log_is_read_from_its_end_and_followed(lab: Lab) -> None:
    """The last lines, and then the next ones as they are written; nothing is left when we leave."""
    code = "import time\nfor n in range(100): print('line', n, flush=True); time.sleep(0.1)"
    files = lab.files("r1", python(code))
    lab.carry_out(lab.apply_plan(files), files)
    query = LogQuery(lab.tree, "process", 0, lines=2)
    time.sleep(0.5)
    last = read_log(lab.open_session, Host("local"), query)
    follower = follow_log(
        lab.open_session,
        Host("local"),
        LogQuery(lab.tree, "process", 0, lines=1, follow=True),
        time.monotonic() + 20,
    )
    numbers = [int(next(follower).split()[1]) for _ in range(4)]
    follower.close()  # type: ignore[attr-defined] # a generator, as its code shows

    assert len(last) == 2
    assert numbers == list(range(numbers[0], numbers[0] + 4))
    assert not [one for one in threading.enumerate() if one.name.startswith("watch")]


def test_a_log_that_is_not_there_is_empty(lab: Lab) -> None:
    """A rank that never started has no lines, and that is no error."""
    query = LogQuery(lab.tree, "process", 7)

    assert read_log(lab.open_session, Host("local"), query) == ()


JOURNAL = {
    "system": ("systemd", "set -- 'exec journalctl -q --no-pager", ""),
    "user": ("systemd-user", "exec journalctl --user -q --no-pager", "yesterday"),
}


@pytest.mark.parametrize(("launch", "begins", "since"), JOURNAL.values(), ids=JOURNAL.keys())
def test_units_log_to_the_journal(lab: Lab, launch: str, begins: str, since: str) -> None:
    """The journal is asked for this rank's unit alone, with what was asked for as words."""
    command = LogQuery(lab.tree, launch, 3, follow=True, since=since).command

    assert begins in command
    assert "-n 20 -u rlx-t@3.service" in command
    assert " -f" in command
    assert f"--since {since}" in command or not since


# Rank 1 has another idea of where rank 0 is: to it the port of rank 0 is as good as blocked.
APART = """\
import os, sys, time
rank = os.environ["RANK"]
time.sleep({late} if rank == "0" else 0)
os.environ.update(
    WORLD="2", PEERS=f"{host}:{{29500 + int(rank)}},{host}:29510", RLX_JOIN_TIMEOUT="60",
    RLX_WIRE="native", RLX_SECURITY="none", RLX_BIND="{host}",
    RLX_STATE_FILE="{run_home}/" + rank + ".state",
)
from rlxdeploy.runtime.builtin import run
sys.exit(run())
"""


@pytest.mark.parametrize("late", [0, 600], ids=["up", "not up yet"])
def test_ranks_that_cannot_reach_one_another_end_the_wait(lab: Lab, late: float) -> None:
    """Once both are up it is of no use, and both ends are named; who is not up is waited for."""
    host = fresh_host()
    code = APART.format(late=late, host=host, run_home=lab.tree.run_home)
    files = lab.files("r1", python(code), ranks=(0, 1), ready="notify")
    plan = replace(lab.apply_plan(files, (0, 1)), join="notify")
    lab.carry_out(plan, files)
    limits = WatchLimits(apart=0.5)
    seen = watch(plan, lab.open_session, Wish(timeout=FEW if late else 30), limits)

    assert (seen.ok, seen.late) == (False, bool(late))
    whys = {one.rank: one.why for one in seen.blamed}
    if late:
        assert "still missing rank 0 of 2" in whys[1]
    else:
        why = f"dialled {host}:29501: connection refused"
        assert whys == {1: f"it cannot reach rank 0 on local, which is up: {why}"}
