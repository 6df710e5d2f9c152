"""`doctor` on real hosts: what is wrong is found in one look, by name, with what mends it."""

from typing import Any

from tests.fleet.desk import Desk, differences, footprints, logins
from tests.fleet.harness.fleet import Fleet, Lend
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import run, wait_until
from tests.fleet.harness.spec import HostSpec


def found(desk: Desk, *, code: int) -> set[tuple[str, str, str]]:
    """Return severity, host and check of every finding."""
    findings: list[dict[str, Any]] = desk.json("doctor", code=code)["findings"]
    return {(one["severity"], one["host"], one["check"]) for one in findings}


def ail(first: Host, second: Host, third: Host) -> None:
    """Give each host an ailment or two of its own."""
    first.break_profile("ops")
    first.shift_clock("+1h")
    second.fill_disk()
    run(("ip", "-n", second.namespace, "link", "set", "eth0", "mtu", "1400"))
    listen = "import socket, time; s = socket.create_server(('', 29500)); time.sleep(600)"
    third.exec(("systemd-run", "--unit=stranger", "python3", "-c", listen))
    listening = ("ss", "-Hlnt", "sport", "=", ":29500")
    wait_until(lambda: "" if third.exec(listening).stdout else "the stranger", 20)
    third.stand_in("nvidia-smi", "#!/bin/sh\necho 'Failed to initialize NVML'; exit 18\n")


def test_each_hosts_ailments_are_found_in_one_look(fleet: Fleet, hosts: Lend) -> None:
    """Well hosts have none; then shell, clock, disk, MTU, port, card and a silent host are told."""
    first, second, third = hosts(3)
    desk = Desk(fleet, "ward")
    desk.write_hosts((first, second, third), tables='[ssh]\nuser = "ops"')
    before = footprints((first, second, third))
    seen = logins(first)

    well = desk.run("doctor")
    assert well.stdout == "ward: 3 hosts asked, nothing to mend\n"
    assert logins(first) == seen + 1

    assert differences(before, (first, second, third)) == []

    ail(first, second, third)
    assert found(desk, code=1) == {
        ("warning", first.name, "profile"),
        ("warning", first.name, "clock"),
        ("warning", second.name, "mtu"),
        ("error", second.name, "disk"),
        ("error", third.name, "port"),
        ("error", third.name, "device"),
    }
    said = " ".join(desk.run("doctor", code=1).stdout.split())
    assert "the shell profile of ops prints at each command: 'Welcome'" in said
    assert "its clock is 1.0 h ahead of the controller's" in said
    assert f"eth0 has MTU 1400 in 10.77.0.0/24, {first.name} (eth0) has 1500" in said
    assert "/var/lib/rlx has 0 MiB left" in said
    assert "port 29500 (0.0.0.0) is held by pid" in said
    assert "of unit stranger.service" in said
    assert "reload the nvidia kernel module" in said

    second.free_disk()
    third.exec(("systemctl", "stop", "stranger"))
    third.stand_in("nvidia-smi", "#!/bin/sh\nexit 6\n")
    assert {one[0] for one in found(desk, code=0)} == {"warning"}

    third.partition()
    assert ("error", third.name, "reach") in found(desk, code=1)


def test_users_without_rights_are_told_what_they_lack(fleet: Fleet, hosts: Lend) -> None:
    """Sudo that asks, a manager that ends with the session, a host without numpy or systemd."""
    asks, bare = hosts(HostSpec(numpy=False), HostSpec(systemd=False))
    desk = Desk(fleet, "clinic")
    desk.write_hosts((asks, bare), tables='[ssh]\nuser = "asks"')

    assert found(desk, code=1) == {
        ("warning", asks.name, "sudo"),
        ("notice", asks.name, "launch"),
        ("error", asks.name, "python"),
        ("warning", bare.name, "systemd"),
    }
