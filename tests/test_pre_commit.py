"""The hook that other repositories take from this one, run by the real pre-commit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PUBLISHED = (
    ".pre-commit-hooks.yaml",
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "rlxdeploy",
    "schemas",
    "templates",
)
GOOD = '[[node]]\naddr = "127.0.0.1:29500"\n'
BAD = '[[node]]\nadr = "127.0.0.1:29500"\n'


class Repository:
    """A scratch git repository; `pre-commit` keeps its environments in *home*."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        self._environment = inherited | {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example.org",
            "PRE_COMMIT_HOME": str(home),
        }
        folder.mkdir(exist_ok=True)
        self.run("git", "init", "--quiet")

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout
        return done

    def commit(self, **files: str) -> subprocess.CompletedProcess[str]:
        """Try to commit the inventories of some folders."""
        for name, content in files.items():
            (self.folder / name).mkdir(exist_ok=True)
            (self.folder / name / "inventory.toml").write_text(content)
        self.run("git", "add", "--all")
        return self.run("git", "commit", "--quiet", "-m", "a", check=False)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Return a repository with the hook installed from a copy of what we publish."""
    scratch = tmp_path_factory.mktemp("pre-commit")
    published = Repository(scratch / "published", scratch / "home")
    for name in PUBLISHED:
        source, target = ROOT / name, published.folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)
    published.run("git", "add", "--all")
    published.run("git", "commit", "--quiet", "-m", "a")
    revision = published.run("git", "rev-parse", "HEAD").stdout.strip()

    user = Repository(scratch / "user", scratch / "home")
    (user.folder / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {published.folder}\n  rev: {revision}\n"
        "  hooks: [{id: rlxdeploy-validate}]\n"
    )
    user.run(sys.executable, "-m", "pre_commit", "install", "--install-hooks")
    return user


@pytest.mark.checkout
@pytest.mark.timeout(600)  # the hook's environment is installed from the package index
def test_a_bad_inventory_stops_the_commit_and_good_ones_pass(repository: Repository) -> None:
    """All files go into one call, and each finding is shown with its place."""
    refused = repository.commit(one=GOOD, two=BAD, three=BAD)

    assert refused.returncode != 0
    for place in ("two/inventory.toml:2:1", "three/inventory.toml:2:1"):
        assert f"{place}: node[0].adr: unknown key; did you mean 'addr'?" in refused.stdout
    assert "one/inventory.toml: valid" in refused.stdout

    passed = repository.commit(one=GOOD, two=GOOD, three=GOOD)
    assert passed.returncode == 0, passed.stdout
    assert "Passed" in passed.stdout
