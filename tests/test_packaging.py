"""What is published installs and works without the checkout."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.wheel import environment

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("sdist")
    subprocess.run(
        [sys.executable, "-m", "build", "--sdist", "--outdir", target, ROOT],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (archive,) = target.glob("*.tar.gz")
    return archive


@pytest.mark.checkout
@pytest.mark.timeout(300)
def test_the_sdist_holds_what_a_packager_needs(sdist: Path) -> None:
    """Tests, templates, schemas and examples travel with the source."""
    with tarfile.open(sdist) as archive:
        names = {"/".join(name.split("/")[1:]) for name in archive.getnames()}

    wanted = {
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "inventories/local.toml",
        "schemas/inventory.schema.json",
        "templates/rank.env.j2",
        "tests/test_packaging.py",
    }
    assert wanted <= names


@pytest.mark.checkout
@pytest.mark.timeout(300)
def test_the_sdist_installs_and_answers_from_another_folder(sdist: Path, tmp_path: Path) -> None:
    """A fresh environment with the sdist validates and renders with the shipped data."""
    python = environment(tmp_path / "venv", sdist)
    inventory = tmp_path / "inventory.toml"
    inventory.write_text('[job]\nname = "sample"\n[[node]]\naddr = "127.0.0.1:29500"\n')
    command = [str(python.parent / "rlxdeploy"), "validate", str(inventory)]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    schema = subprocess.run(
        [python.parent / "rlxdeploy", "schema"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.returncode == 0, done.stderr
    assert schema.stdout == (ROOT / "schemas/inventory.schema.json").read_text()
