"""What the other fleet tests take for granted: faults that bite, and that can be mended."""

from functools import partial

import pytest

from tests.fleet.desk import footprint
from tests.fleet.harness.fleet import Fleet, Lend
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until
from tests.fleet.harness.spec import HostSpec

WAIT_S = 20.0


def test_a_reboot_is_a_new_boot_of_the_same_disk(fleet: Fleet, six: list[Host]) -> None:
    """After a reboot, whoever orders it, the boot id differs and files are still there."""
    host, boot_id = six[0], ("cat", "/proc/sys/kernel/random/boot_id")
    host.write("/etc/kept", "kept")
    boots = [host.exec(boot_id).stdout]
    host.reboot()
    boots.append(host.exec(boot_id).stdout)
    before = host.pid1()
    fleet.ssh(host, "systemctl reboot")
    host.await_up(after=before)
    boots.append(host.exec(boot_id).stdout)

    assert len(set(boots)) == 3
    assert host.exec(("cat", "/etc/kept")).stdout == "kept"


def test_power_goes_off_in_order_and_on_again(fleet: Fleet, six: list[Host]) -> None:
    """A host that was shut down is off, and up again when switched on."""
    host = six[1]
    host.power_off()

    assert not host.is_on()
    assert fleet.ssh(host, "true").returncode == 255
    host.power_on()
    assert fleet.ssh(host, "true").returncode == 0


def test_a_power_cut_says_goodbye_to_nobody(six: list[Host]) -> None:
    """A peer's connection outlives the cut, and ends once the host is back and knows it not."""
    victim, peer = six[2], six[5]
    victim.exec(("systemd-run", "--unit=web", "python3", "-m", "http.server", "8000"))
    wait_until(lambda: "" if peer.dial(victim.address, 8000) == "connected" else "http", WAIT_S)
    talk = f"exec 3<>/dev/tcp/{victim.address}/8000; while printf x >&3; do sleep 0.1; done"
    peer.exec(("systemd-run", "--unit=talk", "bash", "-c", talk))
    connected = ("ss", "-Htn", "state", "established", "dst", victim.address)
    wait_until(lambda: "" if peer.exec(connected).stdout else "the connection", WAIT_S)

    victim.power_cut()
    assert not victim.is_on()
    assert victim.address in peer.exec(connected).stdout
    victim.power_on()
    wait_until(lambda: peer.exec(connected).stdout, WAIT_S)


@pytest.mark.parametrize("power", ["cut", "off"])
def test_an_init_less_host_has_a_power_switch_too(fleet: Fleet, hosts: Lend, power: str) -> None:
    """A host that runs sshd alone can be cut or shut down, and comes back."""
    [host] = hosts(HostSpec(systemd=False))
    if power == "cut":
        host.power_cut()
    else:
        host.power_off()

    assert not host.is_on()
    host.power_on()
    assert fleet.ssh(host, "cat /proc/1/comm").stdout != "systemd\n"


def lacks_a_way(host: Host, other: Host) -> str:
    return "" if host.dial(other.address) == "connected" else f"{host.name} to {other.name}"


def test_a_partition_cuts_off_and_heals(six: list[Host]) -> None:
    """A host whose cable is pulled neither reaches others nor is reached until it is back."""
    alone, other = six[3], six[4]
    alone.partition()
    try:
        assert other.dial(alone.address) == "silent"
        assert alone.dial(other.address) == "silent"
    finally:
        alone.heal()
    for one, far in ((other, alone), (alone, other)):
        wait_until(partial(lacks_a_way, one, far), WAIT_S)


def test_a_firewall_drops_or_rejects_what_it_is_told(six: list[Host]) -> None:
    """DROP is silence, REJECT a refusal, each for the port and the source it names alone."""
    walled, shut_out, let_in = six[3:6]
    walled.firewall("DROP", port=22, source=shut_out.address)
    assert (shut_out.dial(walled.address), let_in.dial(walled.address)) == ("silent", "connected")
    walled.open_firewall()
    walled.firewall("REJECT", port=22)
    assert (let_in.dial(walled.address), let_in.dial(walled.ipv6)) == ("refused", "refused")
    walled.open_firewall()
    assert let_in.dial(walled.address) == "connected"


def test_a_host_behind_nat_dials_out_and_is_not_dialled(fleet: Fleet, six: list[Host]) -> None:
    """A worker behind the router reaches the lan, nobody reaches it but SSH by its forward."""
    with fleet.lend(HostSpec(place="nat"), HostSpec(place="nat")) as (worker, second):
        assert worker.dial(six[0].address) == "connected"
        assert worker.dial(second.address) == "connected"
        assert six[0].dial(worker.address) == "silent"
        assert fleet.ssh(worker, "hostname").stdout == f"{worker.name}\n"
        assert fleet.ssh(second, "hostname").stdout == f"{second.name}\n"


def test_an_inner_host_is_reached_by_way_of_the_bastion_alone(
    fleet: Fleet, six: list[Host]
) -> None:
    """The controller gets to the inner place by ProxyJump, and the lan not at all."""
    with fleet.lend(HostSpec(place="inner")) as [inner]:
        assert fleet.ssh(inner, "hostname").stdout == f"{inner.name}\n"
        assert fleet.bastion.dial(inner.address) == "connected"
        assert six[0].dial(inner.address) != "connected"
        assert "Accepted publickey for root from 10.77.1.1" in inner.sshd_log()


def test_a_strange_or_changed_host_key_is_refused(fleet: Fleet, hosts: Lend) -> None:
    """OpenSSH turns away from a host it does not know and from one whose key has changed."""
    [host] = hosts(1)
    host.distrust()
    assert "Host key verification failed" in fleet.ssh(host, "true").stderr
    host.trust()
    assert fleet.ssh(host, "true").returncode == 0
    host.new_host_key()
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in fleet.ssh(host, "true").stderr
    host.trust()
    assert fleet.ssh(host, "true").returncode == 0


def test_a_full_disk_takes_no_byte_until_it_is_freed(fleet: Fleet, six: list[Host]) -> None:
    """Writing to any place on a full disk fails for want of space."""
    host = six[1]
    host.fill_disk()
    try:
        assert "No space left on device" in fleet.ssh(host, "echo x >/etc/new").stderr
    finally:
        host.free_disk()
    assert fleet.ssh(host, "echo x >/etc/new").returncode == 0


TRACES = {
    "another content of the same size": ("sed -i s/kept/gone/ /etc/trace", "content "),
    "another owner": ("chgrp ops /etc/owned", "file 644 root:ops 5 /etc/owned"),
    "another mode": ("chmod 600 /etc/closed", "file 600 root:root 5 /etc/closed"),
    "another target of a link": ("ln -sfn /dev/null /etc/link", "root:root /etc/link -> /dev/null"),
    "a program of the system touched": ("touch /usr/bin/env", "/usr/bin/env"),
    "a program of the system replaced": ("cp -p /usr/bin/id /usr/bin/who", "/usr/bin/who"),
    "a folder in /usr": ("mkdir /usr/lib/trace", "drwxr-xr-x 0:0 /usr/lib/trace"),
    "a program removed": ("rm /usr/bin/tty", "/usr/bin/tty"),
    "a unit": ("printf '[Service]\\n' >/etc/systemd/system/rlx-trace.service", "unit rlx-trace"),
    "a process": ("setsid sleep 60 </dev/null >/dev/null 2>&1 &", "process root     sleep 60"),
    "a folder in /run": ("mkdir /run/trace", "d 755 root:root /run/trace"),
    "a user who lingers": ("touch /var/lib/systemd/linger/ops", "linger ops"),
}


def test_a_footprint_tells_every_kind_of_trace(fleet: Fleet, hosts: Lend) -> None:
    """What a destroy is measured by sees contents, owners, modes, links, units and processes."""
    [host] = hosts(HostSpec())
    host.exec(("sh", "-c", "cd /etc; echo kept | tee trace owned closed; ln -s trace link"))
    host.exec(("mkdir", "-p", "/var/lib/systemd/linger"))
    fleet.ssh(host, "true")
    before = footprint(host)
    fleet.ssh(host, "true")
    assert footprint(host) == before

    host.exec(("sh", "-c", "\n".join(deed for deed, _ in TRACES.values())))
    new = footprint(host) - before
    told = {what for what, (_, trace) in TRACES.items() if any(trace in line for line in new)}
    assert told == TRACES.keys()
    assert len(new) == len(TRACES) + 4  # a unit and lingering are each a file with content besides


@pytest.mark.parametrize("user", ["root", "fish", "csh"])
def test_a_broken_profile_talks_before_every_command(fleet: Fleet, hosts: Lend, user: str) -> None:
    """Colours and JSON come out before the answer, whichever shell the user has."""
    [host] = hosts(HostSpec())
    host.break_profile(user)

    noise = '\x1b[31mWelcome\x1b[0m\n{"devices": []}\n'
    assert fleet.ssh(host, "echo answer", user=user).stdout == f"{noise}answer\n"


def test_what_hangs_hangs_and_what_is_late_is_late(fleet: Fleet, hosts: Lend) -> None:
    """nvidia-smi and a dead mount never answer, a shifted clock is off, the host is else well."""
    [host] = hosts(1)
    host.hang("nvidia-smi")
    host.dead_mount("/mnt/dead")
    host.shift_clock("+3d")

    stuck = "(nvidia-smi & ls /mnt/dead &) >/dev/null 2>&1; sleep 0.5; pgrep -c 'nvidia-smi|ls'"
    assert fleet.ssh(host, stuck).stdout == "2\n"
    ahead = float(fleet.ssh(host, "date +%s").stdout) - float(host.exec(("date", "+%s")).stdout)
    assert 3 * 86400 - 60 < ahead < 3 * 86400 + 60
