"""What the other fleet tests take for granted: hosts that are real, faults that bite, an end."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.harness.fleet import Fleet, Lend, running_fleet
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import FleetError, wait_until
from tests.fleet.harness.machine import Machine
from tests.fleet.harness.runs import BASE, SWEEP_S, cgroups
from tests.fleet.harness.spec import HostSpec

REPOSITORY = Path(__file__).parents[2]
CONNECTED, REFUSED, SILENT = 0, 1, 124
VERSIONS = {
    "bullseye": "3.9 1.19.5",
    "bookworm": "3.11 1.24.2",
    "trixie": "3.13 2.2.4",
}


def dial(machine: Machine, address: str, port: int = 22) -> int:
    """Say what becomes of a connection from *machine* to this address."""
    connect = f"exec 3<>/dev/tcp/{address}/{port}"
    return machine.exec(("timeout", "1", "bash", "-c", connect), check=False).returncode


def traces(token: str) -> str:
    """Name whatever is left of a run: its directory, cgroups, namespaces, mounts, processes."""
    places = [BASE / token, *cgroups(token), *Path("/run/netns").glob(f"{token}-*")]
    left = [str(path) for path in places if path.exists()]
    left += [line for line in Path("/proc/mounts").read_text().splitlines() if token in line]
    return "; ".join(left + [f"process {line}" for line in _command_lines() if token in line])


def _command_lines() -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield f"{process.name} {(process / 'cmdline').read_text()}"
        except OSError:  # it has ended since it was listed
            continue


@pytest.fixture(scope="module")
def six(fleet: Fleet) -> Iterator[list[Host]]:
    """Give six hosts, two of each release."""
    with fleet.lend(6) as hosts:
        yield hosts


def test_a_mixed_fleet_answers_over_ssh_as_what_it_is(fleet: Fleet, six: list[Host]) -> None:
    """Every host runs its release's systemd, Python and numpy, under its own name."""
    ask = "import sys, numpy; print('%d.%d' % sys.version_info[:2], numpy.__version__)"
    for host in six:
        told = fleet.ssh(host, f'hostname; systemctl is-system-running; python3 -c "{ask}"')

        expected = [host.name, "running", VERSIONS[host.spec.release]]
        assert (told.stdout.split("\n"), told.stderr) == ([*expected, ""], "")


def test_hosts_are_told_apart(six: list[Host]) -> None:
    """No two hosts share a machine id, a boot id, an address or a host key."""
    for identity in (
        [host.exec(("cat", "/etc/machine-id")).stdout for host in six],
        [host.exec(("cat", "/proc/sys/kernel/random/boot_id")).stdout for host in six],
        [host.address for host in six],
        [host.ipv6 for host in six],
        [host.host_key() for host in six],
    ):
        assert len(set(identity)) == len(six)


def test_a_host_sees_its_own_interfaces_alone(six: list[Host]) -> None:
    """/sys shows eth0 with the host's own hardware address, and nothing of the outer machine."""
    for host in six:
        assert host.exec(("ls", "/sys/class/net")).stdout.split() == ["eth0", "lo"]
        assert host.exec(("cat", "/sys/class/net/eth0/address")).stdout.strip() == host.port.mac


def test_hosts_reach_one_another_by_both_protocols(six: list[Host]) -> None:
    """Any host connects to any other by IPv4 and by IPv6."""
    assert [dial(six[0], host.address) for host in six] == [CONNECTED] * 6
    assert [dial(six[0], host.ipv6) for host in six] == [CONNECTED] * 6


@pytest.mark.parametrize(
    ("user", "shell", "sudo"),
    [
        ("root", "/bin/bash", 0),
        ("ops", "/bin/bash", 0),
        ("asks", "/bin/bash", 1),
        ("nosudo", "/bin/bash", 1),
        ("fish", "/usr/bin/fish", 0),
        ("csh", "/bin/csh", 0),
    ],
)
def test_each_user_has_its_shell_and_its_rights(
    fleet: Fleet, six: list[Host], user: str, shell: str, sudo: int
) -> None:
    """Every login user comes in by key, with the shell and the sudo it is named for."""
    told = fleet.ssh(six[0], "echo $SHELL", user=user)

    assert told.stdout == f"{shell}\n"
    assert fleet.ssh(six[0], "sudo -n true", user=user).returncode == sudo


def test_a_password_opens_sudo_for_the_user_it_asks(fleet: Fleet, six: list[Host]) -> None:
    """The user asks is let through sudo by the password fleet, and by it alone."""
    assert fleet.ssh(six[0], "echo fleet | sudo -Sk id -un", user="asks").stdout == "root\n"
    assert fleet.ssh(six[0], "echo wrong | sudo -Sk id -un", user="asks").returncode == 1


def test_user_units_run_where_the_host_has_them(fleet: Fleet, hosts: Lend) -> None:
    """A lingering user has a manager of its own; without pam_systemd nobody has."""
    state = "systemctl --user is-system-running"
    with_units, without = hosts(HostSpec(), HostSpec(user_units=False))

    assert fleet.ssh(with_units, state, user="ops").stdout == "running\n"
    assert fleet.ssh(without, state, user="ops").returncode != 0


def test_what_a_host_is_to_lack_is_not_there(fleet: Fleet, hosts: Lend) -> None:
    """Hosts without Python, numpy, zeroconf or systemd answer SSH and lack just that."""
    imports = "python3 -c 'import zeroconf'; python3 -c 'import numpy'; systemctl status >&-"
    lacking = {"python": "command not found", "numpy": "No module named 'numpy'"}
    lacking |= {"zeroconf": "No module named 'zeroconf'", "systemd": "not been booted with systemd"}
    bare = hosts(*(HostSpec(**{what: False}) for what in lacking))

    for host, complaint in zip(bare, lacking.values(), strict=True):
        lines = fleet.ssh(host, imports).stderr.splitlines()
        assert {complaint} == {word for line in lines for word in lacking.values() if word in line}


def test_a_reboot_is_a_new_boot_of_the_same_disk(six: list[Host]) -> None:
    """After a reboot ordered inside or from here the boot id differs and files are still there."""
    host = six[0]
    host.write("/etc/kept", "kept")
    ids = [host.exec(("cat", "/proc/sys/kernel/random/boot_id")).stdout]
    host.reboot()
    ids.append(host.exec(("cat", "/proc/sys/kernel/random/boot_id")).stdout)

    assert ids[0] != ids[1]
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
    """A peer's connection stays established over a cut and is refused once the power is back."""
    victim, peer = six[2], six[5]
    hold = f"exec 3<>/dev/tcp/{victim.address}/22; head -n 1 <&3; read -r _; echo x >&3; cat <&3"
    peer.exec(("sh", "-c", "mkfifo /run/go"))
    peer.exec(("systemd-run", "--unit=held", "bash", "-c", f"exec </run/go; {hold}"))
    keep = peer.exec(("sh", "-c", "sleep 1000 >/run/go & ss -Htn state established"))
    assert victim.address in keep.stdout


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


def test_a_partition_cuts_off_and_heals(six: list[Host]) -> None:
    """A host whose cable is pulled neither reaches others nor is reached until it is back."""
    alone, other = six[3], six[4]
    alone.partition()
    try:
        assert dial(other, alone.address) == SILENT
        assert dial(alone, other.address) == SILENT
    finally:
        alone.heal()
    assert dial(other, alone.address) == CONNECTED


def test_a_firewall_drops_or_rejects_what_it_is_told(six: list[Host]) -> None:
    """DROP is silence, REJECT a refusal, each for the port and the source it names alone."""
    walled, shut_out, let_in = six[3:6]
    walled.firewall("DROP", port=22, source=shut_out.address)
    assert (dial(shut_out, walled.address), dial(let_in, walled.address)) == (SILENT, CONNECTED)
    walled.open_firewall()
    walled.firewall("REJECT", port=22)
    assert (dial(let_in, walled.address), dial(let_in, walled.ipv6)) == (REFUSED, REFUSED)
    walled.open_firewall()
    assert dial(let_in, walled.address) == CONNECTED


def test_a_host_behind_nat_dials_out_and_is_not_dialled(fleet: Fleet, six: list[Host]) -> None:
    """A worker behind the router reaches the lan, nobody reaches it but SSH by its forward."""
    with fleet.lend(HostSpec(place="nat"), HostSpec(place="nat")) as (worker, second):
        assert dial(worker, six[0].address) == CONNECTED
        assert dial(worker, second.address) == CONNECTED
        assert dial(six[0], worker.address) == SILENT
        assert fleet.ssh(worker, "hostname").stdout == f"{worker.name}\n"
        assert fleet.ssh(second, "hostname").stdout == f"{second.name}\n"


def test_an_inner_host_is_reached_by_way_of_the_bastion_alone(
    fleet: Fleet, six: list[Host]
) -> None:
    """The controller gets to the inner place by ProxyJump, and the lan not at all."""
    with fleet.lend(HostSpec(place="inner")) as [inner]:
        assert fleet.ssh(inner, "hostname").stdout == f"{inner.name}\n"
        assert dial(fleet.bastion, inner.address) == CONNECTED
        assert dial(six[0], inner.address) != CONNECTED
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


@pytest.mark.parametrize("user", ["root", "fish", "csh"])
def test_a_broken_profile_talks_before_every_command(
    fleet: Fleet, hosts: Lend, user: str
) -> None:
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


def test_the_controller_has_a_home_and_a_network_of_its_own(
    fleet: Fleet, six: list[Host]
) -> None:
    """Its ~, even by the password file, its names and its interfaces are not this machine's."""
    show = "echo ~root $HOME; getent hosts $0; ls /sys/class/net; pwd"
    told = fleet.controller(("sh", "-c", show, six[0].name)).stdout.split()

    home, interfaces = str(fleet.home), ["br0", "eth0", "lo", "port11"]
    assert told[:4] == [home, home, six[0].address, six[0].name]
    assert "br0" in told[4:-1] and "eth0" not in told[4:-1] and interfaces
    assert told[-1] == home


def test_a_command_that_does_not_end_is_ended(fleet: Fleet) -> None:
    """A controller's command is killed at its deadline, with what it said so far in the error."""
    with pytest.raises(FleetError, match=r"not finished after 0\.5 s: so far"):
        fleet.controller(("sh", "-c", "echo so far; sleep 1000"), timeout=0.5)


VICTIM = """
    import os, signal
    from pathlib import Path
    from tests.fleet.harness.spec import HostSpec

    def test_that_dies(fleet):
        fleet.hosts(2, HostSpec(place="inner"), HostSpec(place="nat"))
        running = fleet.spawn(("sleep", "1000"))
        Path(os.environ["TOKEN_FILE"]).write_text(fleet.token)
        for process in Path("/proc").glob("[0-9]*"):
            command = (process / "cmdline").read_bytes()
            if os.environ.get("REAPER_TOO") and f"reaper\\0{fleet.token}".encode() in command:
                os.kill(int(process.name), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def pytest_run(
    tmp_path: Path, *wrapped: str, code: str = VICTIM, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run pytest on *code*, with the fleet's fixtures, in a process of its own."""
    file = tmp_path / "test_victim.py"
    file.write_text(textwrap.dedent(code))
    options = ("-p", "tests.fleet.conftest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path))
    return subprocess.run(
        (*wrapped, sys.executable, "-m", "pytest", "-rs", *options, str(file)),
        cwd=REPOSITORY,
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
