"""A saved plan is carried out exactly, or refused with what has moved."""

import json
import os
from pathlib import Path

from tests.cli.desk import PATIENCE_S, Desk

STALE = 6


def saved(desk: Desk, *more: str) -> Path:
    desk.good("plan", "--out", "plan.json", *more)
    return desk.lab / "plan.json"


def test_a_saved_plan_is_carried_out(desk: Desk) -> None:
    """`show` reads it, `apply PLAN` does what it says, and the release is the one it names."""
    desk.pair()
    plan = json.loads(saved(desk, "--join-timeout", "90").read_text(encoding="utf-8"))

    shown = desk.good("show", "plan.json")
    applied = desk.good("apply", "plan.json", "--yes", "--json").document

    assert "ranks 0\N{EN DASH}1 start" in shown.out
    assert (applied["joined"], plan["join_timeout"]) == (True, 90)
    assert {rank["release"] for rank in desk.status()["ranks"]} == {plan["release"]}


def test_a_saved_plan_holds_no_content(desk: Desk) -> None:
    """Files appear as source, digest and size, readable by their owner alone."""
    desk.pair(job='env = { COLOUR = "vermilion" }')
    path = saved(desk)

    assert "vermilion" not in path.read_text(encoding="utf-8")
    assert path.stat().st_mode & 0o777 == 0o600


NOTE = """\
env = { COLOUR = "red" }
[[job.files]]
source = "note.txt"
dest = "note.txt"
"""


def edit_inventory(desk: Desk) -> None:
    desk.pair(job=NOTE.replace("red", "blue"))


def edit_source(desk: Desk) -> None:
    (desk.lab / "note.txt").write_text("another\n")


def remove_source(desk: Desk) -> None:
    (desk.lab / "note.txt").unlink()


def edit_host(desk: Desk) -> None:
    (desk.data / "rlx/demo/current/note.txt").write_text("by hand\n")


MOVES = {
    "the inventory": (edit_inventory, "inventory.toml: job.env.COLOUR has changed since"),
    "a source file": (edit_source, "note.txt has changed since the plan was saved"),
    "a source file that is gone": (remove_source, "note.txt: No such file"),
    "a file on a host": (edit_host, "note.txt has been changed; apply puts it back"),
}


def test_a_saved_plan_is_stale_once_what_it_rests_on_has_moved(desk: Desk) -> None:
    """Exit 6 names the difference each time, and nothing is changed on any host."""
    (desk.lab / "note.txt").write_text("one\n")
    desk.pair(job=NOTE.replace("red", "green"))
    desk.good("apply", "--yes")
    for what, (move, said) in MOVES.items():
        (desk.lab / "note.txt").write_text("two\n")
        desk.pair(job=NOTE)
        saved(desk)
        move(desk)
        before = desk.files()
        refused = desk.run("apply", "plan.json", "--yes")

        assert refused.code == STALE, what
        assert said in refused.err, what
        assert desk.files() == before, what


def test_a_saved_plan_is_stale_once_a_fact_has_moved(desk: Desk) -> None:
    """The program lies elsewhere on the host now: exit 6 names the files that would say so.

    Where it is gone there is no plan any more, and why is what has moved.
    """
    before, now = desk.folder / "before", desk.folder / "now"
    for folder in (before, now):
        folder.mkdir()
    (before / "worker").write_text("#!/bin/sh\nexec sleep 600\n")
    (before / "worker").chmod(0o755)
    desk.environ["PATH"] = f"{before}:{now}:{desk.environ['PATH']}"
    desk.pair(job='command = ["worker"]')
    saved(desk)
    (before / "worker").rename(now / "worker")
    refused = desk.run("apply", "plan.json", "--yes", "--json")

    assert (refused.code, refused.document["error"]["exit"]) == (STALE, STALE)
    told = "\n".join(refused.document["error"]["moved"])
    assert "it differs in process/0.json, process/1.json" in told
    (now / "worker").unlink()
    refused = desk.run("apply", "plan.json", "--yes", "--json")
    assert refused.code == STALE
    assert any("'worker' is not on local" in one for one in refused.document["error"]["moved"])
    assert not (desk.data / "rlx").exists()


def test_a_saved_plan_is_stale_once_it_has_been_carried_out(
    desk: Desk, terminal: tuple[int, int]
) -> None:
    """The second `apply PLAN` finds that its steps are no longer called for.

    One that began before, and whose person took a while to say yes, finds so once it has the lock;
    it leaves alone what stands, on the host and in the record.
    """
    desk.pair()
    saved(desk)
    waiting = desk.asked(terminal, "apply", "plan.json", "--no-preflight", "--json")
    desk.good("apply", "plan.json", "--yes")
    beside = desk.lab / ".rlxdeploy/demo.json"
    pids, written = desk.pids(), beside.read_bytes()

    refused = desk.run("apply", "plan.json", "--yes", "--json")
    os.write(terminal[0], b"y\n")
    late = json.loads(waiting.communicate(timeout=PATIENCE_S)[0])

    assert refused.code == STALE
    assert refused.document["error"]["moved"]
    assert (waiting.returncode, late["exit"], late["changed"]) == (STALE, STALE, False)
    local = late["hosts"]["local"]
    assert (local["kind"], local["moved"]) == ("Overtaken", [f"local: {local['why']}"])
    assert "stands there now and not none" in local["why"]
    assert (desk.pids(), beside.read_bytes()) == (pids, written)


def test_what_is_no_plan_is_said_to_be_none(desk: Desk) -> None:
    """A JSON file of something else is an error with its name, not an inventory gone wrong."""
    (desk.lab / "plan.json").write_text('{"format_version": 1}', encoding="utf-8")

    refused = desk.run("apply", "plan.json", "--yes")

    assert refused.code == 1
    assert "plan.json: not a whole plan" in refused.err
