"""Going back by hand, and freeing what somebody holds."""

import json
import re
import signal
import time
from pathlib import Path

from tests.cli.desk import PATIENCE_S, Desk, until
from tests.cli.test_interrupts import joining

MORE = """\
[[job.files]]
source = "note.txt"
dest = "{dest}"
[placement]
n_layers = {layers}
"""


def applied(desk: Desk, number: int) -> str:
    """Apply a release of that number, with ports and a file outside of its own; return its id."""
    outside = desk.folder / "outside"
    outside.mkdir(exist_ok=True)
    (desk.lab / "note.txt").write_text(f"note {number}\n")
    more = MORE.format(dest=f"note{number}.txt", layers=10 * number)
    path = desk.pair(job=f"workdir = \"{outside}\"\nenv = {{ NUMBER = '{number}' }}\n{more}")
    path.write_text(path.read_text().replace(":29500", f":{first_port(number)}"))
    release: str = desk.good("apply", "--yes", "--json").document["release"]
    return release


def first_port(number: int) -> int:
    return 29500 + 10 * number


def ports(ranks: list[dict[str, str]]) -> list[int]:
    return [int(rank["address"].rpartition(":")[2]) for rank in ranks]


def stands(desk: Desk) -> tuple[set[str], set[bool], list[str]]:
    """Return the ranks' release, whether they have joined, and the files outside."""
    ranks = desk.status()["ranks"]
    outside = sorted(path.name for path in (desk.folder / "outside").glob("note*"))
    return {rank["release"] for rank in ranks}, {rank["joined"] for rank in ranks}, outside


def test_a_rollback_goes_to_the_release_before_and_to_any_that_is_kept(desk: Desk) -> None:
    """Ranks, addresses, layers, release and files outside are those of then, as the plan says."""
    first, second, third = (applied(desk, number) for number in (1, 2, 3))
    assert stands(desk) == ({third}, {True}, ["note3.txt"])

    done = desk.good("rollback", "--yes")
    assert f"back to release {second}" in done.out
    assert "2 of 2 ranks joined" in done.out
    assert f"{desk.host}:{first_port(2)} " in done.out
    assert re.findall(r"  (\d+:\d+)  +process ", done.out) == ["0:20", "0:20"]
    assert stands(desk) == ({second}, {True}, ["note2.txt"])
    assert ports(desk.status()["ranks"]) == [first_port(2), first_port(2) + 1]

    assert desk.good("rollback", first, "--yes", "--json").document["joined"] is True
    assert stands(desk) == ({first}, {True}, ["note1.txt"])
    again = json.loads(desk.good("plan", "--json").out)["generation"]
    assert again == 4, "never again one that has been"
    forward = desk.good("apply", "--yes").out
    assert "every link between ranks is tried" in forward, "PEERS change with the release"
    assert stands(desk)[1:] == ({True}, ["note3.txt"])
    desk.good("destroy", "--yes")
    assert not list((desk.folder / "outside").iterdir())


def test_a_release_that_nobody_has_is_refused_with_those_there_are(desk: Desk) -> None:
    """Nothing is changed, and the ids to choose from are in the message."""
    first, second = applied(desk, 1), applied(desk, 2)
    pids = desk.pids()
    refused = desk.run("rollback", "0123", "--yes")

    assert refused.code == 1
    assert "no host has release 0123 to go back to" in refused.err
    assert f"{first} (applied" in refused.err
    assert second not in refused.err
    assert desk.pids() == pids


def test_there_is_nothing_before_the_first_release(desk: Desk) -> None:
    """A rollback of it says so, and it runs on."""
    applied(desk, 1)
    refused = desk.run("rollback", "--yes")

    assert refused.code == 1
    assert "nothing to go back to" in refused.err


def test_a_release_nobody_confirmed_is_taken_back_by_hand(desk: Desk) -> None:
    """After an interrupted apply nobody has to wait for the hosts' own timers."""
    first = applied(desk, 1)
    desk.pair(job='ready = "notify"\nrestart = "no"\ncommand = ["sleep", "600"]\n')
    process = desk.start("apply", "--yes")
    until(lambda: {record["release"] for record in desk.records().values()} != {first})
    until(lambda: all(desk.pids().values()))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert stands(desk)[0] != {first}

    desk.good("rollback", "--yes")
    assert stands(desk) == ({first}, {True}, ["note1.txt"])


def test_an_unlock_ends_who_holds_the_lock(desk: Desk) -> None:
    """It says who that was; the next command has its way."""
    process = joining(desk)
    listed = desk.run("unlock")
    assert listed.code == 64, "there is nobody to ask"
    named = desk.run("rollback", str(desk.lab / "inventory.toml"))
    assert (named.code, f"-i {desk.lab / 'inventory.toml'}" in named.err) == (64, True)
    assert "local: held by apply by" in listed.out

    freed = desk.good("unlock", "--yes", "--json").document
    assert "apply by" in freed["hosts"]["local"]["held_by"]
    assert not (desk.data / "rlx/demo/lock").exists()
    process.kill()
    desk.good("destroy", "--yes")
    assert "demo: nothing was locked on the 1 host asked." in desk.good("unlock", "--yes").out


def test_who_finds_a_lock_is_told_whose_and_for_how_long(desk: Desk) -> None:
    """Owner, command and age: one of two applies wins, the other leaves with 5."""
    joining(desk)
    inventory = desk.lab / "inventory.toml"
    inventory.write_text(inventory.read_text() + 'env = { MORE = "1" }\n')
    time.sleep(1)
    second = desk.run("apply", "--yes", "--json")

    why = second.document["hosts"]["local"]["why"]
    assert (second.code, second.document["exit"]) == (5, 5)
    assert why.startswith("held by apply by ")
    assert "@" in why
    assert int(why.split()[-2]) >= 1


def test_every_run_is_in_the_journal(desk: Desk) -> None:
    """One object a line: who began what, what hosts did, how it ended; no content of a file."""
    desk.pair(job="env = { TOLD = 'not-for-the-journal' }")
    desk.good("apply", "--yes")
    desk.good("destroy", "--yes")
    lines = journal(desk)

    assert [one["event"] for one in lines if one["event"] in ("begin", "end")] == [
        "begin",
        "end",
    ] * 2
    assert [one["verb"] for one in lines if one["event"] == "begin"] == ["apply", "destroy"]
    assert len({one["run"] for one in lines}) == 2
    assert {"host": "local", "did": "staged"}.items() <= next(
        one for one in lines if one["event"] == "host"
    ).items()
    assert "not-for-the-journal" not in json.dumps(lines)


def journal(desk: Desk) -> list[dict[str, object]]:
    path: Path = desk.lab / ".rlxdeploy" / "demo.journal"
    assert path.stat().st_mode & 0o777 == 0o600
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
