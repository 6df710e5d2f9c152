"""A rank is not up until it sees the device it is for: the check after the start."""

import pytest

from tests.fleet.desk import Desk
from tests.fleet.harness.fleet import Fleet, Lend
from tests.fleet.harness.host import Host
from tests.fleet.harness.spec import HostSpec

SMI = """\
#!/bin/sh
case $* in
*--query-gpu*) echo "0, GPU-1, Tesla T4, 15360, [N/A], 00000000:0B:00.0" ;;
-L) echo "GPU 0: Tesla T4 (UUID: GPU-1)" ;;
esac
"""
NODES = "mknod -m 666 /dev/nvidia0 c 195 0; mknod -m 666 /dev/nvidiactl c 195 255"
BLIND = "it does not see /dev/nvidia0, /dev/nvidiactl, which the host has"
# The names are still there, and lead nowhere; strict hardening leaves not even the names.
CLOSED = "InaccessiblePaths=/dev/nvidia0 /dev/nvidiactl"


def give_card(host: Host) -> None:
    """Let *host* have what the survey of a Tesla T4 sees."""
    host.stand_in("nvidia-smi", SMI)
    host.exec(("sh", "-c", NODES))


@pytest.mark.timeout(180, func_only=True)
def test_a_rank_that_cannot_see_its_card_is_no_rank(fleet: Fleet, hosts: Lend) -> None:
    """Strict hardening and drop-ins that hide a card fail the apply and show in status, by name."""
    both = hosts(HostSpec(release="bullseye"), HostSpec())
    for host in both:
        give_card(host)
    desk = Desk(fleet, "cards")
    nodes = (f'ssh = "root@{both[0].name}"', f'ssh = "ops@{both[1].name}"')
    desk.write(nodes, job='hardening = "strict"')

    refused = desk.run("apply", "--yes", code=3).stderr
    assert BLIND in refused
    assert desk.json("status")["ranks"] == []

    desk.write(nodes)
    applied = desk.run("apply", "--yes")
    assert "not proven" not in applied.stderr
    assert "warning" not in desk.run("status").stderr

    drop_in = "/etc/systemd/system/rlx-cards@1.service.d/own.conf"
    both[1].write(drop_in, f"[Service]\n{CLOSED}\n")
    epoch = desk.ranks()[0]["epoch"]
    both[1].exec(("systemctl", "daemon-reload"))
    both[1].exec(("systemctl", "restart", "--no-block", "rlx-cards@1"))
    desk.await_whole(2, other_than=epoch)
    warned = desk.run("status").stderr
    assert f"warning: rank 1 on ops@{both[1].name}: {BLIND}" in warned
    assert "rank 0" not in warned
    again = desk.run("apply", "--yes", code=3).stderr
    assert f"rank 1 on ops@{both[1].name} at {both[1].address}:29500: {BLIND}" in again

    desk.run("destroy", "--yes")
