"""The preflight as a person meets it: before a change, told, written down, and left out."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from rlxdeploy.app.compile import Request
from rlxdeploy.app.lab import Lab
from rlxdeploy.app.plan import plan_job
from rlxdeploy.app.preflight import checked
from rlxdeploy.app.run import Run
from rlxdeploy.app.say import nobody
from rlxdeploy.model.preflight import How
from tests.cli.desk import PATIENCE_S, Desk, until
from tests.cli.slow import slow_python


def stages(desk: Desk) -> list[dict[str, object]]:
    journal = desk.lab / ".rlxdeploy" / "demo.journal"
    events = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    return [one for one in events if one["event"] == "stage"]


def test_links_are_tried_where_peers_change_and_only_there(desk: Desk) -> None:
    """The first apply tries them and says in what time; one that changes a variable does not."""
    desk.pair()
    first = desk.good("apply", "--yes")
    assert "every link between ranks is tried before anything is changed" in first.out
    assert "preflight: 1 link answered in " in first.out
    tried, *_ = [one for one in stages(desk) if "seconds" in one]
    assert (tried["stage"], tried["answered"]) == ("preflight ok", 1)

    desk.pair(job='env = { NOTE = "new" }')
    assert desk.good("plan", "--json").document["preflight"] is False
    again = desk.good("apply", "--yes", "--json").document["preflight"]
    assert (again["links"], again["not_needed"]) == ([], "neither PEERS nor WORLD changes")
    (skipped,) = [one["why"] for one in stages(desk) if one["stage"] == "preflight skipped"]
    assert skipped == "neither PEERS nor WORLD changes"
    desk.good("destroy", "--yes")


def test_a_person_can_do_without(desk: Desk) -> None:
    """With --no-preflight nobody listens or dials, and the document says that nobody did."""
    desk.pair()
    applied = desk.good("apply", "--yes", "--no-preflight", "--json").document

    assert applied["preflight"] is None
    assert not [one for one in stages(desk) if str(one["stage"]).startswith("preflight")]
    desk.good("destroy", "--yes")


def test_a_failed_preflight_is_exit_1_and_changes_nothing(desk: Desk) -> None:
    """An address that the host does not have: the rank, the address and what to do are told."""
    # For documentation: no machine has it.
    desk.pair(node='bind = "192.0.2.7"')
    before = desk.files()
    failed = desk.run("apply", "--yes")

    assert failed.code == 1, failed
    assert "rank 0 on local at 192.0.2.7:29500: cannot listen" in failed.err
    assert "Nothing was changed on any host." in failed.err
    assert "demo: the group cannot form like this." in failed.err
    document = desk.run("apply", "--yes", "--json").document
    assert (document["exit"], document["changed"]) == (1, False)
    assert [one["how"] for one in document["preflight"]["links"]] == ["cannot listen"]
    assert desk.files().keys() == before.keys()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_in_the_preflight_leaves_all_as_it_was(desk: Desk, number: signal.Signals) -> None:
    """The host is told to be as it was, the way on is named, and nothing runs or listens."""
    mark = desk.folder / "begun"
    desk.pair(node=slow_python(desk, mark))
    process = desk.start("apply", "--yes")
    until(mark.exists)
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 128 + number, err
    assert "as it was" in err
    assert "to go on: rlxdeploy apply inventory.toml" in err
    assert stages(desk)[-1]["stage"] == "preflight"
    assert not (desk.data / "rlx").exists()
    until(lambda: not desk.left())
    assert desk.ports() == set()


def test_a_port_taken_since_the_plan_is_told_with_its_holder(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a person reads the plan somebody may come: pid and command are those of the holder."""
    for name, value in desk.environ.items():
        monkeypatch.setenv(name, value)
    inventory: Path = desk.pair()
    with Lab() as lab:
        planned = plan_job(Request(inventory), lab, nobody)
        with socket.create_server((desk.host, 29500)):
            run = Run.begin("apply", planned.plan, inventory, "a test")
            matrix = checked(planned, lab, nobody, run)

    (blocked,) = matrix.blocked
    assert (blocked.rank, blocked.host, blocked.found.how) == (0, "local", How.TAKEN)
    assert f"by pid {os.getpid()} (" in blocked.found.detail
    assert blocked.remedy == "stop it, or write another port"
