"""What the other fleet tests take for granted: that nothing is left, whoever was killed."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.harness.fleet import Fleet, running_fleet
from tests.fleet.harness.local import wait_until
from tests.fleet.harness.runs import BASE, SWEEP_S, cgroups
from tests.fleet.harness.spec import HostSpec

REPOSITORY = Path(__file__).parents[2]

VICTIM = """
    import os, signal, subprocess
    from pathlib import Path
    from tests.fleet.harness.spec import HostSpec

    def test_that_dies(fleet):
        fleet.hosts(2, HostSpec(place="inner"), HostSpec(place="nat"))
        running = fleet.spawn(("sleep", "1000"))
        Path(os.environ["TOKEN_FILE"]).write_text(fleet.token)
        if os.environ.get("REAPER_TOO"):
            subprocess.run(["pkill", "-KILL", "-f", f"reaper {fleet.token}"], check=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""

NEEDY = """
    def test_that_needs_a_fleet(fleet):
        pass
"""


def pytest_run(
    tmp_path: Path, code: str, *wrapped: str, **env: str
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


def traces(token: str) -> str:
    """Name what is left of a run: its directory, cgroups, namespaces, mounts and processes."""
    places = [BASE / token, *cgroups(token), *Path("/run/netns").glob(f"{token}-*")]
    places += Path("/run/systemd/nspawn").glob(f"*/{token}*")
    left = [str(path) for path in places if path.exists()]
    left += [line for line in Path("/proc/mounts").read_text().splitlines() if token in line]
    return "; ".join(left + [line for line in command_lines() if token in line])


def command_lines() -> Iterator[str]:
    """Yield every process of this machine as its number and its arguments."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield f"process {process.name} {(process / 'cmdline').read_text()}"
        except OSError:  # it has ended since it was listed
            continue


@pytest.mark.usefixtures("fleet")
def test_a_killed_run_leaves_nothing(tmp_path: Path) -> None:
    """SIGKILL to pytest ends its hosts and whatever else the run has made, all by itself."""
    token = tmp_path / "token"
    died = pytest_run(tmp_path, VICTIM, TOKEN_FILE=str(token))

    assert died.returncode == -signal.SIGKILL, died.stdout
    wait_until(lambda: traces(token.read_text()), SWEEP_S)


@pytest.mark.usefixtures("fleet")
def test_the_next_run_sweeps_up_after_a_killed_reaper(tmp_path: Path) -> None:
    """What is left when the watcher is killed as well is gone once another run has begun."""
    token = tmp_path / "token"
    died = pytest_run(tmp_path, VICTIM, TOKEN_FILE=str(token), REAPER_TOO="yes")

    assert died.returncode == -signal.SIGKILL, died.stdout
    assert traces(token.read_text())
    with running_fleet(print):
        assert not traces(token.read_text())


def test_runs_stand_side_by_side(fleet: Fleet) -> None:
    """A second run has hosts of the same addresses, and its end does not touch the first."""
    with fleet.lend(1) as [host]:
        with running_fleet(print) as second:
            [twin] = second.hosts(HostSpec(name="twin"))
            assert second.ssh(twin, "hostname").stdout == "twin\n"
        assert not traces(second.token)
        assert fleet.ssh(host, "hostname").stdout == f"{host.name}\n"


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize(("fleet_env", "outcome"), [("", "1 skipped"), ("required", "1 error")])
def test_a_machine_that_cannot_mount_is_told_so(
    tmp_path: Path, fleet_env: str, outcome: str
) -> None:
    """Where no fleet can stand its tests skip with the reason; with FLEET=required they fail."""
    powerless = ("setpriv", "--bounding-set=-sys_admin")
    ran = pytest_run(tmp_path, NEEDY, *powerless, FLEET=fleet_env)

    assert outcome in ran.stdout
    assert "needs root that may mount" in ran.stdout
