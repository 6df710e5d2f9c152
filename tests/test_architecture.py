"""The house rules that are not a linter's: imports go one way, and a worker loads little."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DEPLOYER_ONLY = {"pydantic", "fabric", "paramiko", "jinja2", "typer", "rich", "zeroconf"}


def loaded_by(code: str) -> set[str]:
    """Return the modules that a fresh interpreter holds after *code*."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["rlxdeploy", "rlxdeploy.runtime", "rlxdeploy.runtime.group"])
def test_a_worker_loads_nothing_of_the_deployer(module: str) -> None:
    """Importing the runtime, in a fresh interpreter, pulls in no SSH and no schema."""
    assert not DEPLOYER_ONLY & loaded_by(f"import {module}")


@pytest.mark.parametrize("module", ["rlxdeploy.runtime", "rlxdeploy.runtime.supervisor"])
def test_the_supervisor_needs_no_numpy(module: str) -> None:
    """A host without numpy can still supervise a command of the user's."""
    assert "numpy" not in loaded_by(f"import {module}")


def test_validating_loads_no_ssh_no_numpy_and_no_mdns() -> None:
    """`rlxdeploy validate` answers at once since it loads only what reading takes."""
    code = (
        "from rlxdeploy.cli.main import app; from typer.testing import CliRunner;"
        f"CliRunner().invoke(app, ['validate', {str(ROOT / 'inventories/local.toml')!r}])"
    )

    assert not {"fabric", "paramiko", "numpy", "zeroconf"} & loaded_by(code)


@pytest.mark.checkout
def test_imports_go_only_the_agreed_ways() -> None:
    """The contracts in pyproject.toml hold for every module of the package."""
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
