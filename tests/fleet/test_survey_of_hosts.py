"""The survey of real hosts: three releases of Debian with systemd, and users of every kind."""

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from rlxdeploy.facts.script import Patience
from rlxdeploy.model.codec import load_survey
from rlxdeploy.model.survey import HostFacts
from rlxdeploy.model.targets import Enquiry
from tests.fleet.desk import Desk
from tests.fleet.harness.fleet import Fleet, Lend
from tests.fleet.harness.host import Host
from tests.fleet.harness.spec import HostSpec

SYSTEMD = {"bullseye": "247", "bookworm": "252", "trixie": "257"}
PYTHON = {"bullseye": "3.9.", "bookworm": "3.11.", "trixie": "3.13."}
NUMPY = {"bullseye": "1.19.", "bookworm": "1.24.", "trixie": "2.2."}

# The controller's own process: it asks one host through its ssh and prints the survey.
ASK = """
import json, shlex, sys
from rlxdeploy.edge.local import ChildSession
from rlxdeploy.edge.session import BOOTSTRAP
from rlxdeploy.edge.survey import SurveyLimits, survey
from rlxdeploy.facts.script import Patience
from rlxdeploy.model.codec import dump_survey
from rlxdeploy.model.host import Host
from rlxdeploy.model.targets import Enquiry, Target, Targets
name, user, enquiry, patience = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4:]
ssh = ["ssh", "-o", "BatchMode=yes", "-l", user, name, "/bin/sh -c " + shlex.quote(BOOTSTRAP)]
limits = SurveyLimits(patience=Patience(*map(float, patience)))
target = Target(Host(name, name), Enquiry(**enquiry))
print(dump_survey(survey(Targets((target,)), lambda host, _: ChildSession(host, ssh), limits)))
"""


def ask(
    fleet: Fleet,
    host: Host,
    enquiry: Enquiry,
    user: str = "root",
    patience: Patience = Patience(8.0, 8.0),  # noqa: B008  # a frozen value
) -> HostFacts:
    words = (host.name, user, json.dumps(asdict(enquiry)), str(patience.quick), str(patience.slow))
    root = str(Path(__file__).parents[2])
    ran = fleet.controller((sys.executable, "-c", ASK, *words), env={"PYTHONPATH": root})
    assert ran.returncode == 0, ran.stderr
    survey = load_survey(ran.stdout, host.name)
    assert not survey.failed
    return survey.hosts[host.name]


def test_every_release_tells_what_it_is(fleet: Fleet, six: list[Host]) -> None:
    """Versions, identity and the one cable are those of the host, over a real sshd."""
    for host in six:
        facts = ask(fleet, host, Enquiry("demo", ports=(29500,), folders=("/",)))
        system, release = facts.platform, host.spec.release

        assert (system.hostname, system.init) == (host.name, "systemd")
        assert system.systemd == SYSTEMD[release]
        assert system.python_version.startswith(PYTHON[release])
        assert system.numpy.startswith(NUMPY[release])
        assert system.machine_id == host.at("/etc/machine-id").read_text().strip()
        assert system.host_key in fleet.ssh(host, "cat /etc/ssh/*.pub | ssh-keygen -lf -").stdout
        assert system.launches[0] == "systemd"
        (cable,) = [link for link in facts.network.interfaces if link.name == "eth0"]
        assert (cable.mac, cable.up) == (host.port.mac, True)
        assert host.address in [address.partition("/")[0] for address in cable.addresses]
        assert facts.network.default_routes == ("eth0",)
        assert (facts.unanswered, facts.holders, system.noise) == ((), (), "")


def test_every_release_is_measured(fleet: Fleet, six: list[Host]) -> None:
    """`probe --bench` multiplies and writes on each, in upstream's form, and leaves no file."""
    three = {host.spec.release: host for host in six}.values()
    desk = Desk(fleet, "measured")
    desk.write_hosts(three)

    said = desk.json("probe", "--bench")["hosts"]

    assert said.keys() == {host.name for host in three}
    for caps in said.values():
        assert caps["devices"][0]["device"] == "cpu"
        assert caps["gflops"] == caps["devices"][0]["gflops"] > 0.1
        assert caps["io_mbps"] > 0.1
    for host in three:
        assert "rlx-io-probe" not in host.exec(("ls", "-A", "/root")).stdout


@pytest.mark.parametrize(
    ("user", "sudo", "launches"),
    [
        ("root", False, {"systemd"}),
        ("ops", True, {"systemd"}),
        ("asks", False, set[str]()),
        ("nosudo", False, set[str]()),
        ("fish", True, {"systemd"}),
        ("csh", True, {"systemd"}),
    ],
)
def test_every_user_is_told_with_what_works_for_it(
    fleet: Fleet, six: list[Host], user: str, *, sudo: bool, launches: set[str]
) -> None:
    """Login shells of all kinds answer alike; only passwordless sudo or root opens systemd."""
    system = ask(fleet, six[0], Enquiry("demo", user="ops"), user).platform

    assert (system.user, system.sudo) == (user, sudo)
    assert {"systemd"} & set(system.launches) == launches
    assert "process" in system.launches
    assert system.job_groups == ("ops",)


def test_without_a_user_manager_no_user_unit_is_promised(fleet: Fleet, hosts: Lend) -> None:
    """What lingering would start must be there: libpam-systemd and a bus of the user's."""
    with_units, without = hosts(HostSpec(), HostSpec(user_units=False))
    assert ask(fleet, with_units, Enquiry("demo"), "nosudo").platform.launches == ("process",)
    for host in (with_units, without):
        host.linger("nosudo")

    assert "systemd-user" in ask(fleet, with_units, Enquiry("demo"), "nosudo").platform.launches
    assert ask(fleet, without, Enquiry("demo"), "nosudo").platform.launches == ("process",)


UNIT = """\
[Service]
Type=notify
NotifyAccess=all
ExecStart=/usr/local/bin/rank %i
Restart=no
[Install]
WantedBy=multi-user.target
"""
RANK = """\
#!/usr/bin/python3
import os, socket, sys, time
if sys.argv[1] == "1":
    sys.exit(78)
listening = socket.create_server(("127.0.0.1", 29500))
os.makedirs("/run/rlx/demo", exist_ok=True)
with open("/run/rlx/demo/0.state", "w") as state:
    state.write('{"joined": true}')
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.sendto(b"READY=1\\nSTATUS=all joined", os.environ["NOTIFY_SOCKET"])
time.sleep(600)
"""


@pytest.mark.parametrize("user", ["root", "ops"])
def test_units_and_the_holder_of_a_port_are_told(fleet: Fleet, hosts: Lend, user: str) -> None:
    """A ready rank, a refused one and an enabled one that never ran are told apart by systemd."""
    (host,) = hosts(HostSpec())
    host.write("/etc/systemd/system/rlx-demo@.service", UNIT)
    host.write("/usr/local/bin/rank", RANK, mode=0o755)
    host.write("/var/lib/rlx/demo/releases/r1/env/0.env", "A=b\n", mode=0o600)
    started = "ln -s releases/r1 /var/lib/rlx/demo/current; systemctl daemon-reload; "
    started += "systemctl enable -q rlx-demo@2; systemctl start rlx-demo@0 rlx-demo@1 2>&1; true"
    assert fleet.ssh(host, started).returncode == 0

    facts = ask(fleet, host, Enquiry("demo", ports=(29500,)), user)
    first, second, third = facts.job.ranks

    assert (first.active, first.ready, first.status) == ("active", True, "all joined")
    assert first.node == {"joined": True}
    assert abs(first.since - facts.platform.clock) < 60
    assert (second.active, second.exit_status, second.ready) == ("failed", 78, False)
    assert (third.active, third.enabled, first.enabled) == ("inactive", True, False)
    (holder,) = facts.holders
    assert (holder.unit, holder.rank, holder.pid) == ("rlx-demo@0.service", 0, first.pid)
    assert facts.job.current == "r1"
    assert facts.job.files["/var/lib/rlx/demo/current/env/0.env"].mode == 0o600
    assert "/etc/systemd/system/rlx-demo@.service" in facts.job.files


def test_a_broken_host_still_answers(fleet: Fleet, hosts: Lend) -> None:
    """A noisy profile, a driver that hangs and a dead mount cost their own answers, no more."""
    (host,) = hosts(HostSpec())
    host.break_profile()
    host.hang("nvidia-smi")
    host.dead_mount("/mnt/dead")
    began = time.monotonic()

    facts = ask(
        fleet, host, Enquiry("demo", folders=("/mnt/dead", "/")), patience=Patience(3.0, 3.0)
    )

    assert time.monotonic() - began < 10
    assert facts.platform.noise == "Welcome"
    assert set(facts.unanswered) == {"nvidia-smi", "nvidia-smi -L"}
    assert set(facts.hardware.disk_free) == {"/"}
    assert [device.device for device in facts.hardware.devices if not device.available] == ["cuda"]
    left = host.exec(("sh", "-c", "pgrep -xc nvidia-smi; true")).stdout
    assert left == "0\n"
