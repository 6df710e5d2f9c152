"""What people do to hosts between two applies, and applies for some of the hosts only."""

import json
import os
import shutil
import signal
from collections.abc import Iterator

import pytest

from tests.fleet.desk import RUN_S, Desk, differences, footprints, standing
from tests.fleet.harness.fleet import Fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until

UNITS = "/etc/systemd/system"


@pytest.fixture(scope="module")
def three(fleet: Fleet) -> Iterator[list[Host]]:
    """Give one host of each release."""
    with fleet.lend(3) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def desk(fleet: Fleet, three: list[Host]) -> Desk:
    """Give the desk of a job on all three."""
    desk = Desk(fleet, "drift")
    desk.write_hosts(three, job='launch = "systemd"')
    return desk


def told(document: dict[str, object]) -> set[tuple[str, str, str]]:
    """Return the drift of a document: host, the path's last part, and what became of it."""
    drift = document["drift"]
    assert isinstance(drift, list)
    return {(one["host"], one["path"].rpartition("/")[2], one["what"]) for one in drift}


def forget_record(desk: Desk) -> None:
    """Remove what is remembered of the last apply, where there is any."""
    beside = desk.folder / ".rlxdeploy"
    (beside / f"{desk.job}.json").unlink(missing_ok=True)
    shutil.rmtree(beside / f"{desk.job}.known", ignore_errors=True)


def test_what_was_changed_by_hand_is_shown_and_put_back(desk: Desk, three: list[Host]) -> None:
    """Status and plan name it alike, apply mends it; a drop-in of a person's stays throughout.

    A plan that was saved before is stale, and says of each what has become of it.
    With the record lost nothing else is lost: the plan stays empty, and destroy leaves nothing.
    """
    before = footprints(three)
    edited, disabled, robbed = three
    desk.run("apply", "--yes")
    assert told(desk.json("status")) == set()
    plan = str(desk.folder / "plan.json")
    desk.run("plan", "--out", plan)
    unit = edited.at(f"{UNITS}/rlx-drift@.service")
    wanted = unit.read_text()
    unit.write_text(wanted + "# by hand\n")
    drop_in = edited.at(f"{UNITS}/rlx-drift@.service.d/mine.conf")
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nNice=5\n")
    weight = "CPUWeight=50"
    edited.exec(("systemctl", "set-property", "--runtime", "rlx-drift@0.service", weight))
    disabled.exec(("systemctl", "disable", "rlx-drift@1.service"))
    robbed.at("/var/lib/rlx/drift/current/env/2.env").unlink()

    seen = told(desk.json("status"))
    assert seen == {
        (edited.name, "rlx-drift@.service", "has been changed"),
        (edited.name, "mine.conf", "is not ours"),
        (edited.name, "50-CPUWeight.conf", "is not ours"),
        (disabled.name, "rlx-drift@1.service", "is no longer enabled at boot"),
        (robbed.name, "2.env", "has been removed"),
    }
    assert told(desk.json("plan")) == seen
    assert (
        f"{drop_in.name} is not ours; it takes effect, and is left alone" in desk.run("plan").stdout
    )
    stale = desk.fleet.controller(("rlxdeploy", "apply", plan, "--yes"))
    assert stale.returncode == 6
    begins = f"since then {edited.name}: {UNITS}/rlx-drift@.service"
    assert f"{begins} has been changed; apply puts it back" in stale.stderr
    assert f"{begins}.d/mine.conf is not ours; it takes effect" in stale.stderr

    desk.run("apply", "--yes")
    left = {(edited.name, one, "is not ours") for one in ("mine.conf", "50-CPUWeight.conf")}
    assert unit.read_text() == wanted
    assert told(desk.json("plan")) == left
    assert desk.is_whole(3) == ""

    # What the controller remembers is convenience: the hosts know what is deployed.
    stood = [standing(host) for host in three]
    forget_record(desk)
    desk.run("plan", "--detailed-exitcode")
    assert desk.json("apply", "--yes")["changed"] is False
    assert [standing(host) for host in three] == stood
    forget_record(desk)
    desk.run("destroy", "--yes")
    assert drop_in.exists()
    shutil.rmtree(drop_in.parent)
    assert differences(before, three) == []


def test_a_plan_for_some_hosts_leaves_the_others_alone(desk: Desk, three: list[Host]) -> None:
    """What concerns no running group may be done host by host; a restart tears no group."""
    first, *others = three
    desk.run("apply", "--yes")
    stood = [standing(host) for host in three]
    tagged = [f'ssh = "{host.name}"\ntags = ["turn{turn}"]' for turn, host in enumerate(three)]
    desk.write(tagged, job='launch = "systemd"\nboot = false')

    limited = desk.run("apply", "--yes", "--limit", "tag:turn0").stdout
    assert "1 host to change" in limited
    assert f"{others[0].name} is left as it is" in limited
    enabled = [starts_at_boot(host) for host in three]
    assert enabled == [False, True, True]
    assert [standing(host) for host in others] == stood[1:]

    desk.write_hosts(three, job='launch = "systemd"\nenv = { MORE = "1" }')
    torn = desk.run("apply", "--yes", "--limit", "rank:1-2", code=1).stderr
    assert f"rank 0 on {first.name} has to change with the others" in torn
    assert [standing(host) for host in others] == stood[1:]

    desk.write_hosts(three, job='launch = "systemd"\nready = "notify"\ncommand = ["sleep", "900"]')
    unlocked(desk, three)
    desk.write_hosts(three, job='launch = "systemd"')
    desk.run("destroy", "--yes")


def unlocked(desk: Desk, hosts: list[Host]) -> None:
    """See an apply that waits for its ranks, and lives, lose its locks."""
    inventory = str(desk.folder / "inventory.toml")
    holder = desk.fleet.spawn(("rlxdeploy", "apply", inventory, "--yes"))
    home = f"/var/lib/rlx/{desk.job}"

    def lacking() -> str:
        free = [host.name for host in hosts if not host.at(f"{home}/.revert/state").exists()]
        return f"not told to go: {free}" if free else ""

    try:
        wait_until(lacking, RUN_S)
        # It lives, and its sessions with it, and can do nothing about what is done to them.
        os.kill(holder.pid, signal.SIGSTOP)
        freed = desk.json("unlock", "--yes")["hosts"]
        assert freed.keys() == {host.name for host in hosts}
        assert all("apply by " in one["held_by"] for one in freed.values())
        assert not any(host.at(f"{home}/lock").exists() for host in hosts)
    finally:
        holder.kill()
        holder.communicate()


def starts_at_boot(host: Host) -> bool:
    """Tell whether the host's rank starts at boot."""
    wants = f"{UNITS}/multi-user.target.wants"
    return bool(host.exec(("sh", "-c", f"ls {wants} | grep rlx-drift@ || :")).stdout)


def test_a_host_with_another_key_stops_all_unless_some_may_fail(
    desk: Desk, three: list[Host]
) -> None:
    """Exit 4, and 6 for a saved plan, with both fingerprints; with --max-fail the others go on."""
    *others, swapped = three
    plan = desk.folder / "plan.json"
    desk.run("plan", "--out", str(plan))
    swapped.new_host_key()
    before = footprints(three)

    stopped = desk.run("apply", "--yes", code=4).stderr
    saved = desk.fleet.controller(("rlxdeploy", "apply", str(plan), "--yes", "--json"))
    assert "has changed: it shows ssh-ed25519 SHA256:" in stopped
    assert stopped.count("SHA256:") == 2
    assert saved.returncode == 6
    error = json.loads(saved.stdout)["error"]
    assert (error["kind"], error["exit"]) == ("Stale", 6)
    assert "".join(error["moved"]).count("SHA256:") == 2
    assert differences(before, three) == []
    assert desk.json("status", "--limit", "@failed", code=4)["failed"].keys() == {swapped.name}

    went = desk.json("apply", "--yes", "--max-fail", "1", code=3)
    assert went["joined"] is True
    assert went["hosts"][swapped.name]["ok"] is False
    (unread,) = desk.json("logs", "-n", "1", code=4)["failed"]
    assert (unread["rank"], unread["host"], unread["kind"]) == (None, swapped.name, "Untrusted")
    assert {went["hosts"][host.name]["ok"] for host in others} == {True}
    assert desk.is_whole(2) == ""
    assert differences({swapped.name: before[swapped.name]}, [swapped]) == []
    swapped.trust()
    desk.run("apply", "--yes")
    assert desk.is_whole(3) == ""
    desk.run("destroy", "--yes")
