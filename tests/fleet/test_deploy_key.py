"""The key of a group on real hosts: who has it joins, who has another is refused."""

import time
from functools import partial

from tests.fleet.desk import Desk, differences, footprints
from tests.fleet.harness.fleet import Fleet, Lend
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until

KEY = "/var/lib/rlx/keyed/key"
OTHER = "5a" * 32
# Far more than it takes to be refused for good.
JOIN_S = 90
# Where a key could show: what processes are and were started with, what was logged, all of /var.
SEEN = r"""
cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n'
journalctl -b --no-pager
find /etc /run /var /root /tmp -xdev -type f -size -2048k -exec grep -l -f /root/pattern {} + \
  2>/dev/null | grep -v '^/root/pattern$' | sed 's/^/holds /'
"""


def test_a_host_with_another_key_is_refused(fleet: Fleet, hosts: Lend) -> None:
    """Its rank ends with 78, which no restart mends, and the wait with it; apply mends the key."""
    both = hosts(2)
    before = footprints(both)
    desk = Desk(fleet, "keyed")
    desk.write_hosts(both, job=f"join_timeout = {JOIN_S}")
    desk.run("apply", "--yes")
    assert desk.is_whole(2) == ""
    epoch = desk.ranks()[0]["epoch"]
    both[1].exec(("sh", "-c", f"echo {OTHER} >{KEY}"))

    begun = time.monotonic()
    refused = desk.run("restart", code=3)
    assert time.monotonic() - begun < JOIN_S / 2
    assert "every rank of a job needs the same RLX_KEY_FILE" in refused.stdout + refused.stderr
    wait_until(partial(not_refused, both[1]), 15)

    planned = desk.run("plan").stdout
    assert f"inputs changed ({KEY})" in planned
    assert OTHER not in planned
    desk.run("apply", "--yes")
    desk.await_whole(2, other_than=epoch)
    desk.run("destroy", "--yes")
    assert differences(before, both) == []


def not_refused(host: Host) -> str:
    shown = host.exec(("systemctl", "show", "-p", "ExecMainStatus", "rlx-keyed@*")).stdout
    return "" if shown == "ExecMainStatus=78\n" else f"exit 78: {shown}"


def test_a_key_is_in_no_process_log_or_other_file(fleet: Fleet, hosts: Lend) -> None:
    """It lies on each host once, and on the controller once."""
    both = hosts(2)
    desk = Desk(fleet, "keyed")
    desk.write_hosts(both)
    desk.run("apply", "--yes")
    key = (desk.folder / ".rlxdeploy" / "keyed.key").read_text().strip()

    for host in both:
        seen = seen_of(host, key)
        assert key not in seen
        assert [line for line in seen.splitlines() if line.startswith("holds ")] == [f"holds {KEY}"]
    files = (path for path in desk.folder.rglob("*") if path.is_file())
    assert [one.name for one in files if key.encode() in one.read_bytes()] == ["keyed.key"]
    desk.run("destroy", "--yes")


def seen_of(host: Host, key: str) -> str:
    host.write("/root/pattern", f"{key}\n", mode=0o600)
    return host.exec(("sh", "-c", SEEN)).stdout


def test_ranks_of_three_releases_speak_the_public_wire_where_that_is_written(
    fleet: Fleet, hosts: Lend
) -> None:
    """Without protection, as the inventory has to say; then no host has a key."""
    three = hosts(3)
    desk = Desk(fleet, "public")
    desk.write_hosts(three, job='wire = "rlx"\nsecurity = "none"')
    desk.run("apply", "--yes")
    assert desk.is_whole(3) == ""
    for host in three:
        assert not host.at("/var/lib/rlx/public/key").exists()
    desk.run("destroy", "--yes")
