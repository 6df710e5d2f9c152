"""pytest for the hosts, whose systems have none: one folder that runs on Python 3.9 and later.

Like the images it is fetched once and kept; `python -m tests.fleet.harness.tools` does so ahead of
a test run.
"""

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tests.fleet.harness.images import cache_dir
from tests.fleet.harness.local import locked, run, usual_umask

FETCH_S = 300.0

# The last releases that support Python 3.9, all of them pure Python.  The last three are what 3.9
# lacks; named here because pip decides about them by the Python it runs on.
_PINNED = (
    *("pytest==8.4.2", "pytest-timeout==2.4.0", "hypothesis==6.141.1"),
    *("attrs==26.1.0", "iniconfig==2.1.0", "packaging==26.3", "pluggy==1.6.0"),
    *("pygments==2.21.0", "sortedcontainers==2.4.0"),
    *("exceptiongroup==1.3.0", "tomli==2.2.1", "typing-extensions==4.15.0"),
)


def host_pytest(say: Callable[[str], None]) -> Path:
    """Return a folder for PYTHONPATH with pytest in it, fetched now if the cache lacks it.

    Raises FleetError when the packages cannot be had.
    """
    name = f"pytest-{hashlib.sha256(repr(_PINNED).encode()).hexdigest()[:12]}"
    ready = cache_dir() / name
    if not ready.is_dir():
        say(f"fleet: fetching pytest for the hosts into {ready.parent}, once")
        with usual_umask(), locked(ready.with_name(f"{name}.lock"), FETCH_S):
            if not ready.is_dir():
                _fetch(ready)
    return ready


def _fetch(ready: Path) -> None:
    draft = ready.with_name(f"{ready.name}.draft")
    if draft.exists():
        shutil.rmtree(draft)
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    plain = ("--no-deps", "--only-binary=:all:", "--no-compile", "--target", str(draft))
    run((*pip, *plain, "--python-version", "3.9", *_PINNED), timeout=FETCH_S)
    draft.rename(ready)


if __name__ == "__main__":
    print(host_pytest(lambda line: print(line, file=sys.stderr)))  # noqa: T201 - a command
