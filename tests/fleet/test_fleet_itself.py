"""What the other fleet tests take for granted: hosts that are what they claim to be."""

import pytest

from tests.fleet.harness.fleet import Fleet, Lend
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import FleetError
from tests.fleet.harness.spec import HostSpec

VERSIONS = {"bullseye": ("3.9", "1.19"), "bookworm": ("3.11", "1.24"), "trixie": ("3.13", "2.2")}


def minor(version: str) -> str:
    """Return a version without its last number."""
    return version.rpartition(".")[0]


def test_a_mixed_fleet_answers_over_ssh_as_what_it_is(fleet: Fleet, six: list[Host]) -> None:
    """Every host runs its release's systemd, Python and numpy, under its own name."""
    ask = "import sys, numpy; print(sys.version.split()[0], numpy.__version__)"
    for host in six:
        told = fleet.ssh(host, f'hostname; systemctl is-system-running; python3 -c "{ask}"')

        name, state, python, numpy = told.stdout.split()
        assert (name, state) == (host.name, "running")
        assert (minor(python), minor(numpy)) == VERSIONS[host.spec.release]


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
    assert [six[0].dial(host.address) for host in six] == ["connected"] * 6
    assert [six[0].dial(host.ipv6) for host in six] == ["connected"] * 6


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
    """A user who logs in has a manager of its own; without pam_systemd nobody has."""
    ask = "systemctl --user show-environment >&-"
    with_units, without = hosts(HostSpec(), HostSpec(user_units=False))

    assert fleet.ssh(with_units, ask, user="ops").returncode == 0
    assert fleet.ssh(without, ask, user="ops").returncode != 0


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (HostSpec(python=False), "python3: command not found"),
        (HostSpec(numpy=False), "No module named 'numpy'"),
        (HostSpec(zeroconf=False), "No module named 'zeroconf'"),
        (HostSpec(systemd=False), "System has not been booted with systemd"),
    ],
    ids=["python", "numpy", "zeroconf", "systemd"],
)
def test_what_a_host_is_to_lack_is_not_there(
    fleet: Fleet, hosts: Lend, spec: HostSpec, complaint: str
) -> None:
    """A host without Python, numpy, zeroconf or systemd answers SSH and lacks just that."""
    [host] = hosts(spec)
    use_all = "python3 -c 'import zeroconf' && python3 -c 'import numpy' && systemctl status >&-"
    told = fleet.ssh(host, use_all)

    assert told.returncode != 0
    assert complaint in told.stderr


def test_the_controller_has_a_home_and_a_network_of_its_own(fleet: Fleet, six: list[Host]) -> None:
    """Its ~, even by the password file, its names and its interfaces are not this machine's."""
    show = "pwd; echo ~root $HOME; getent hosts $0; ls /sys/class/net"
    home, host = str(fleet.home), six[0]
    told = fleet.controller(("sh", "-c", show, host.name)).stdout.split()

    assert told[:5] == [home, home, home, host.address, host.name]
    assert "br0" in told[5:]
    assert "eth0" not in told[5:]


def test_a_command_that_does_not_end_is_ended(fleet: Fleet) -> None:
    """A controller's command is killed at its deadline, with what it said so far in the error."""
    with pytest.raises(FleetError, match=r"not finished after 0\.5 s: so far"):
        fleet.controller(("sh", "-c", "echo so far; sleep 1000"), timeout=0.5)
