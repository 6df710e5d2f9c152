"""What stops a deployment, a host that is down or a full disk; then nothing is changed."""

from collections.abc import Iterator

import pytest

from tests.fleet.desk import Desk, differences, footprints
from tests.fleet.harness.fleet import Fleet, Lend
from tests.fleet.harness.host import Host
from tests.fleet.harness.spec import HostSpec


@pytest.fixture(scope="module")
def three(fleet: Fleet) -> Iterator[list[Host]]:
    """Give one host of each release."""
    with fleet.lend(3) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def desk(fleet: Fleet, three: list[Host]) -> Desk:
    """Give the desk of a job on all three."""
    desk = Desk(fleet, "refused")
    desk.write_hosts(three)
    return desk


def test_a_host_that_is_down_stops_all_or_is_left_out_on_demand(
    desk: Desk, three: list[Host]
) -> None:
    """Exit 4 and no change; with enough others, or where that is wished, the group is smaller."""
    *up, down = three
    before = footprints(up)
    down.power_off()
    stopped = desk.run("apply", "--yes", code=4)
    assert f"{down.name}: survey: connect to {down.address}:22: " in stopped.stderr
    assert differences(before, up) == []

    first = desk.run("plan", "--skip-unreachable").stdout.splitlines()[0]
    assert first == f"refused: 2 ranks in a mesh on 2 hosts, without {down.name}"
    desk.write_hosts(three, job="min_nodes = 3")
    desk.run("apply", "--yes", code=4)
    desk.write_hosts(three, job="min_nodes = 2")
    applied = desk.run("apply", "--yes")
    assert f"{down.name} is left out" in applied.stdout
    assert desk.is_whole(2) == ""
    down.power_on()
    desk.write_hosts(three)
    again = desk.run("apply", "--yes")
    assert desk.is_whole(3) == ""
    assert "rank 2 is new" in again.stdout
    desk.run("destroy", "--yes")


def test_a_host_that_is_not_trusted_is_told_with_fingerprints(
    desk: Desk, three: list[Host]
) -> None:
    """An unknown key says how to trust it; a changed one shows both, and nothing is written."""
    before = footprints(three)
    stranger, known = three[0], fingerprint(three[0])
    stranger.distrust()
    unknown = desk.run("plan", code=4).stderr
    assert f"unknown: ssh-ed25519 {known}" in unknown.replace("\n", " ")
    assert f"`rlxdeploy trust {stranger.name}`" in unknown
    assert differences(before, three) == []

    stranger.trust()
    stranger.new_host_key()
    before = footprints(three)
    changed = desk.run("apply", "--yes", code=4).stderr
    assert known in changed
    assert fingerprint(stranger) in changed
    stranger.trust()
    assert differences(before, three) == []


def test_a_user_who_is_not_let_in_is_named_with_the_keys_offered(
    desk: Desk, three: list[Host]
) -> None:
    """A wrong user is no down host: the keys offered are shown, and what has to work first."""
    desk.write_hosts(three, tables='[ssh]\nuser = "nobody"')
    refused = desk.run("plan", code=4).stderr
    desk.write_hosts(three)
    assert f"nobody is not let in on {three[0].name}; offered" in refused
    assert "ssh -o BatchMode=yes" in refused


def test_a_full_disk_is_found_before_anything_that_runs_is_touched(
    desk: Desk, three: list[Host]
) -> None:
    """At stage the host says so; no rank is stopped anywhere, and what was staged is gone.

    With --max-fail the others go without it where its ranks run on, and it is the one to mend.
    """
    desk.run("apply", "--yes")
    pids = [rank["pid"] for rank in desk.ranks()]
    before = footprints(three)
    full = three[1]
    desk.write_hosts(three, job="env = { LARGE = '" + "x" * 100_000 + "' }")
    full.fill_disk()
    failed = desk.run("apply", "--yes", code=1)
    spared = desk.run("apply", "--yes", "--max-fail=1", code=1)
    desk.write_hosts(three, job="boot = false")
    without = desk.json("apply", "--yes", "--max-fail=1", code=3)
    full.free_disk()
    assert f"{full.name}: stage: " in failed.stderr + failed.stdout
    assert "full" in failed.stderr + failed.stdout
    assert "Nothing was changed on any host" in failed.stderr + failed.stdout
    assert "--max-fail spares no host whose ranks start with the others" in spared.stderr
    assert [rank["pid"] for rank in desk.ranks()] == pids
    assert differences({full.name: before[full.name]}, [full]) == []
    hosts = without["hosts"]
    assert {name for name, one in hosts.items() if not one["ok"]} == {full.name}
    assert "full" in hosts[full.name]["why"]
    assert [hosts[host.name]["changed"] for host in three if host is not full] == [True, True]

    mended = desk.json("apply", "--yes", "--limit", "@failed")
    assert {name for name, one in mended["hosts"].items() if one["changed"]} == {full.name}
    assert [rank["pid"] for rank in desk.ranks()] == pids
    desk.run("destroy", "--yes")
    desk.write_hosts(three)


def test_a_silent_host_that_is_not_meant_stops_nobody(desk: Desk, three: list[Host]) -> None:
    """It is known from the last apply and left alone; where all would restart it has to answer."""
    *meant, silent = three
    limit = ("--limit", ",".join(host.name for host in meant))
    quick = "[ssh]\nconnect_timeout = 2"
    desk.run("apply", "--yes")
    silent.partition()
    desk.write_hosts(three, job="boot = false", tables=quick)
    stopped = desk.run("apply", "--yes", code=4)
    limited = desk.json("apply", "--yes", *limit)
    desk.write_hosts(three, job="env = { MORE = '1' }", tables=quick)
    restart = desk.run("apply", "--yes", *limit, code=4)
    silent.heal()
    desk.write_hosts(three, job="boot = false")
    later = desk.json("apply", "--yes")

    assert f"{silent.name}: survey: connect to" in stopped.stderr
    changed = {name for name, one in limited["hosts"].items() if one["changed"]}
    assert changed == {host.name for host in meant}
    assert "the whole group starts anew, so it has to answer" in restart.stderr
    assert {name for name, one in later["hosts"].items() if one["changed"]} == {silent.name}
    desk.run("destroy", "--yes")
    desk.write_hosts(three)


def test_a_host_that_left_is_cleared_once_it_answers(desk: Desk, three: list[Host]) -> None:
    """Silent, it is told and not forgotten; then nothing of its rank stays, in whatever state."""
    before = footprints(three)
    *staying, leaving = three
    desk.run("apply", "--yes")
    leaving.partition()
    desk.write_hosts(staying, tables="[ssh]\nconnect_timeout = 2")
    smaller = desk.run("apply", "--yes").stdout
    assert f"{leaving.name} left the group and cannot be cleared" in smaller
    assert "2 of 2 ranks joined" in smaller

    leaving.heal()
    cleared = desk.run("apply", "--yes").stdout
    assert "1 host to change: 5 files removed" in cleared, "unit, environment, mark, key, runtime"
    assert differences({leaving.name: before[leaving.name]}, [leaving]) == []
    assert leaving.name not in desk.run("apply", "--yes").stdout
    desk.run("destroy", "--yes")
    desk.write_hosts(three)
    assert differences(before, three) == []


def test_hosts_without_what_the_runtime_needs_are_told_together(fleet: Fleet, hosts: Lend) -> None:
    """Without python, or without numpy, a host is named with what to install."""
    bare, plain = hosts(HostSpec(python=False), HostSpec(numpy=False))
    desk = Desk(fleet, "needy")
    desk.write_hosts([bare, plain])
    refused = desk.run("plan", code=1).stderr
    assert f"'python3' is not on {bare.name}; searched" in refused
    assert f"python3 on {plain.name} (Python 3.11.2) has no numpy" in refused


def test_an_address_that_only_its_own_host_can_dial_is_refused(
    desk: Desk, three: list[Host]
) -> None:
    """Loopback and a name that Debian maps to 127.0.1.1 are errors with what to write instead."""
    nodes = [f'ssh = "{host.name}"' for host in three]
    nodes[0] += '\naddr = "127.0.0.1:29500"'
    desk.write(nodes)
    refused = desk.run("plan", code=1).stderr
    assert "no other machine can dial 127.0.0.1" in refused
    assert f"write {three[0].address}" in refused
    # Every host's own /etc/hosts says 127.0.1.1 for its name: nobody asks it.
    desk.write_hosts(three)
    peers = {row["address"] for row in desk.json("plan")["ranks"]}
    assert peers == {f"{host.address}:29500" for host in three}


def fingerprint(host: Host) -> str:
    """Return the fingerprint of the key that *host* shows."""
    shown = host.exec(("ssh-keygen", "-lf", "/etc/ssh/ssh_host_ed25519_key.pub")).stdout
    return shown.split()[1]
