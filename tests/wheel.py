"""Run the tests from another folder against the built wheel, where no checkout can help.

A scratch environment holds the wheel alone; the development packages are lent to it by a `.pth`
line, which, unlike a second installation, leaves the editable checkout behind.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CARRIED = ("tests", "bench", "inventories", "docs", "pyproject.toml", "README.md", "Makefile")


def main() -> int:
    """Build, install and test; return pytest's exit code."""
    with tempfile.TemporaryDirectory(prefix="rlxdeploy-wheel-") as scratch:
        folder = Path(scratch)
        wheel = _build(folder / "dist")
        python = environment(folder / "venv", wheel)
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir()
        for name in CARRIED:
            _carry(ROOT / name, elsewhere / name)
        marks = "not fleet and not checkout and not quiet and not soak"
        variables = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
        pytest = (str(python), "-m", "pytest", "-q", "-m", marks)
        # Once here, and not once in each of the five, every test file is compiled.
        subprocess.run(
            (*pytest, "--collect-only"),
            cwd=elsewhere,
            env=variables,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        at_once = ("-n", "5", "--dist", "worksteal")
        return subprocess.run(
            (*pytest, *at_once), cwd=elsewhere, env=variables, check=False
        ).returncode


def _build(target: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(target), str(ROOT)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (wheel,) = target.glob("*.whl")
    return wheel


def environment(folder: Path, package: Path) -> Path:
    """Make a scratch environment with *package* in it and return its interpreter."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", package],
        check=True,
    )
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


def _carry(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    elif source.exists():
        shutil.copy2(source, target)


if __name__ == "__main__":
    sys.exit(main())
