"""The same line as somebody else than root, and on hosts that lack what others have."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.fleet.desk import Desk, differences, footprints, one_login_each
from tests.fleet.harness.fleet import Fleet, Lend
from tests.fleet.harness.host import Host
from tests.fleet.harness.local import wait_until
from tests.fleet.harness.spec import HostSpec


@pytest.fixture(scope="module")
def three(fleet: Fleet) -> Iterator[list[Host]]:
    """Give one host of each release."""
    with fleet.lend(3) as hosts:
        yield hosts


@contextmanager
def deployed(desk: Desk, hosts: list[Host], launch: str) -> Iterator[str]:
    """Give what apply said while the group stands; then destroy, and see nothing left."""
    before = footprints(hosts)
    with one_login_each(hosts):
        said = desk.run("apply", "--yes").stdout
    assert said.count(f"  {launch}  ") == len(hosts)
    assert desk.is_whole(len(hosts)) == ""
    yield said
    desk.run("destroy", "--yes")
    assert differences(before, hosts) == []


def stays(desk: Desk, world: int) -> None:
    """See that a second apply is no change, and that every rank's log can be read."""
    assert desk.json("apply", "--yes")["changed"] is False
    assert desk.run("logs").stdout.count("joined as rank") >= world


def test_a_login_user_deploys_to_the_system_by_sudo(fleet: Fleet, three: list[Host]) -> None:
    """With sudo -n the units are the system's and root's, and the ranks run as the login user."""
    desk = Desk(fleet, "sudoer")
    desk.write_hosts(three, tables='[ssh]\nuser = "ops"')
    with deployed(desk, three, "systemd"):
        for host in three:
            unit = host.exec(("systemctl", "show", "-p", "User", "rlx-sudoer@*"))
            env = host.exec(("sh", "-c", "stat -c '%a %U' /var/lib/rlx/sudoer/current/env/*"))
            assert (unit.stdout, env.stdout) == ("User=ops\n", "600 root\n")
        stays(desk, len(three))


def test_any_login_shell_and_the_openssh_client_will_do(fleet: Fleet, three: list[Host]) -> None:
    """A user may stand in the alias; fish, csh, profiles that print and ssh itself are no bar."""
    desk = Desk(fleet, "shells")
    users = dict(zip(("ops", "fish", "csh"), three, strict=True))
    for user, host in users.items():
        host.break_profile(user)
        fleet.ssh(host, "true", user=user)  # fish makes folders of its own at its first start
    nodes = (f'ssh = "{user}@{host.name}"' for user, host in users.items())
    desk.write(nodes, tables='[ssh]\nclient = "openssh"')
    with deployed(desk, three, "systemd") as said:
        assert ": reached with openssh as written" in said


_TRAINER = "#!/bin/sh\nsleep 600\n"


def test_a_program_of_the_login_user_is_run_by_its_absolute_path(
    fleet: Fleet, three: list[Host]
) -> None:
    """What a login finds in ~/.local/bin runs under every launch; a miss lists where was looked."""
    desk = Desk(fleet, "trainer")
    users = dict(zip(("ops", "asks", "nosudo"), three, strict=True))
    users["asks"].linger("asks")
    nodes = [f'ssh = "{user}@{host.name}"' for user, host in users.items()]
    desk.write(nodes, job='command = ["trainer", "--lr", "1"]')
    missed = desk.run("plan", code=1).stderr
    for user, host in users.items():
        assert f"'trainer' is not on {user}@{host.name}; searched /" in missed
        assert f":/home/{user}/.local/bin:" in missed

    for user, host in users.items():
        host.write(f"/home/{user}/.local/bin/trainer", _TRAINER, mode=0o755, user=user)
    said = desk.run("apply", "--yes").stdout
    for launch in ("systemd", "systemd-user", "process"):
        assert said.count(f"  {launch}  ") == 1
    for rank, (user, host) in zip(desk.ranks(), users.items(), strict=True):
        args = host.exec(("ps", "-o", "user=,args=", str(rank["pid"]))).stdout
        assert args.split() == [user, "/bin/sh", f"/home/{user}/.local/bin/trainer", "--lr", "1"]
    desk.run("destroy", "--yes")


def test_the_ranks_may_run_as_another_account(fleet: Fleet, three: list[Host]) -> None:
    """Root deploys for the user of the job, who has to exist on every host."""
    desk = Desk(fleet, "account")
    desk.write_hosts(three, job='user = "ghost"')
    refused = desk.run("plan", code=1).stderr
    assert all(f"{host.name} has no account 'ghost'" in refused for host in three)

    desk.write_hosts(three, job='user = "nosudo"')
    with deployed(desk, three, "systemd"):
        for rank, host in zip(desk.ranks(), three, strict=True):
            key = host.exec(("stat", "-c", "%a %U", "/var/lib/rlx/account/key"))
            assert key.stdout == "600 nosudo\n"
            assert host.exec(("ps", "-o", "user=", str(rank["pid"]))).stdout == "nosudo\n"


def test_a_rank_that_is_not_managed_joins_when_it_is_started(
    fleet: Fleet, three: list[Host]
) -> None:
    """It has a rank, an entry in PEERS and no login; started by hand, it needs the job's key."""
    *managed, other = three
    desk = Desk(fleet, "loose")
    nodes = [f'ssh = "{host.name}"' for host in managed]
    desk.write([*nodes, f'managed = false\naddr = "{other.address}:29500"'])
    apply = fleet.spawn(("rlxdeploy", "apply", str(desk.folder / "inventory.toml"), "--yes"))
    wait_until(lambda: "" if start_by_hand(managed[1], other) else "a deployed rank", 20)
    said, _ = apply.communicate(timeout=60)

    assert apply.returncode == 0, said
    assert "loose: 2 of 3 ranks joined" in said
    desk.run("destroy", "--yes")
    other.exec(("systemctl", "stop", "by-hand"))


def start_by_hand(pattern: Host, host: Host) -> bool:
    """Start rank 2 on *host* with what *pattern* has for rank 1, once it has it."""
    home = pattern.at("/var/lib/rlx")
    # The key is put in place after the release is.
    if not (home / "loose/current/env/1.env").exists() or not (home / "loose/key").exists():
        return False
    (archive,) = (home / "store").glob("[0-9a-f]*")
    lines = (home / "loose/current/env/1.env").read_text().splitlines()
    env = [line.replace('"', "") for line in lines if line and not line.startswith("#")]
    own = [f"--setenv={one}" for one in env if not one.startswith(("RANK=", "RLX_STATE_FILE="))]
    host.at("/root/runtime.zip").write_bytes(archive.read_bytes())
    host.write("/root/key", (home / "loose/key").read_text(), mode=0o600)
    files = ("--setenv=RLX_KEY_FILE=/root/key", "--setenv=PYTHONPATH=/root/runtime.zip")
    place = ("--setenv=RANK=2", *files)
    node = ("python3", "-m", "rlxdeploy.runtime")
    host.exec(("systemd-run", "--unit=by-hand", *own, *place, *node))
    return True


def test_sudo_that_asks_a_password_is_no_way_to_root(fleet: Fleet, three: list[Host]) -> None:
    """It is not asked, so that no account is locked; where systemd is wanted that is an error."""
    desk = Desk(fleet, "asked")
    desk.write_hosts(three[:1], tables='[ssh]\nuser = "asks"\nbecome = "sudo"')
    refused = desk.run("plan", code=1).stderr
    assert f"ssh.become: sudo -n does not make asks root on {three[0].name}" in refused


def test_a_users_own_manager_is_taken_where_it_lingers(fleet: Fleet, three: list[Host]) -> None:
    """Without sudo the user's systemd starts the ranks, unless it would end with the session."""
    desk = Desk(fleet, "lingerer")
    desk.write_hosts(three, tables='[ssh]\nuser = "nosudo"', job='launch = "systemd-user"')
    refused = desk.run("plan", code=1).stderr
    assert refused.count("`loginctl enable-linger nosudo` lets them live on") == len(three)

    desk.write_hosts(three, tables='[ssh]\nuser = "nosudo"')
    assert desk.run("plan").stdout.count("process launch is taken") == len(three)

    for host in three:
        host.linger("nosudo")
    with deployed(desk, three, "systemd-user") as said:
        assert "/home/nosudo/.config/systemd/user/rlx-lingerer@.service" in said
        stays(desk, len(three))


def test_a_host_without_systemd_runs_a_supervisor(fleet: Fleet, hosts: Lend) -> None:
    """Process launch is taken by itself where systemd is not PID 1, and the plan says its limit."""
    bare = hosts(HostSpec(systemd=False, release="bullseye"), HostSpec(systemd=False))
    desk = Desk(fleet, "bare")
    desk.write_hosts(bare)
    with deployed(desk, bare, "process") as said:
        assert "process launch does not survive a reboot" in said
        stays(desk, len(bare))
