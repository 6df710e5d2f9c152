"""The units are ones that systemd takes without a word."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.render.kit import contents, rendered
from tests.resolve.lab import machine

ANALYZE = shutil.which("systemd-analyze")
MANAGERS = {"system": "systemd", "user": "systemd-user"}
COMMANDS = {
    "the built-in node": "",
    "a command": 'command = ["python3", "-c", "a;b", ";", "50%h", "$HOME", "say \\"x\\"", "1\\n2"]',
}


def unit(launch: str, hardening: str, command: str = "") -> str:
    """Return the template unit of a one-rank job."""
    text = f'[job]\nname = "demo"\nlaunch = "{launch}"\nhardening = "{hardening}"\n{command}\n'
    files = contents(rendered(text + '[[node]]\ndevice = "cpu"\n', machine()))
    return next(content for path, content in files.items() if path.endswith(".service"))


@pytest.mark.skipif(ANALYZE is None, reason="there is no systemd-analyze on this machine")
@pytest.mark.parametrize("hardening", ["gpu", "strict", "off"])
@pytest.mark.parametrize(("scope", "launch"), MANAGERS.items(), ids=MANAGERS.keys())
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_systemd_finds_nothing_to_say(
    tmp_path: Path, scope: str, launch: str, hardening: str, command: str
) -> None:
    """`systemd-analyze verify` is silent; it exits with 0 on mistakes, so its words count."""
    assert ANALYZE is not None
    # verify wants the program to exist on this machine.
    text = re.sub(
        r'^ExecStart="[^"]*"',
        "ExecStart=/bin/true",
        unit(launch, hardening, command),
        flags=re.MULTILINE,
    )
    path = tmp_path / "rlx-demo@.service"
    path.write_text(text, encoding="utf-8")

    done = subprocess.run(
        [ANALYZE, f"--{scope}", "verify", "--man=no", "--recursive-errors=no", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )

    assert (done.stderr, done.returncode) == ("", 0)


# What a user manager cannot apply ends a unit with status 216, 218 or 226.
SYSTEM_ONLY = (
    "User=",
    "SupplementaryGroups=",
    "CapabilityBoundingSet=",
    "Private",
    "Protect",
    "ReadWritePaths=",
)


@pytest.mark.parametrize("hardening", ["gpu", "strict", "off"])
def test_a_user_unit_holds_only_what_a_users_manager_can_apply(hardening: str) -> None:
    """No directive of it needs root."""
    lines = unit("systemd-user", hardening).splitlines()

    assert not [line for line in lines if line.startswith(SYSTEM_ONLY)]
    assert "WantedBy=default.target" in lines


# Each of these closes devices, or forbids the setuid helper that makes the device files.
HIDING = ("PrivateDevices=", "DevicePolicy=", "ProtectClock=", "NoNewPrivileges=", "Restrict")


def test_the_gpu_hardening_keeps_devices_open() -> None:
    """A rank on a GPU sees it; strict says in validation that it will not."""
    assert not [line for line in unit("systemd", "gpu").splitlines() if line.startswith(HIDING)]
    assert "PrivateDevices=yes" in unit("systemd", "strict")


def test_a_built_in_node_notifies_and_a_command_need_not() -> None:
    """Ready = auto is notify with a watchdog for the one, exec without for the other."""
    node, command = unit("systemd", "gpu"), unit("systemd", "gpu", COMMANDS["a command"])

    assert "\nType=notify\nNotifyAccess=all\n" in node
    assert "\nWatchdogSec=60\n" in node
    assert "\nType=exec\n" in command
    assert "WatchdogSec" not in command
