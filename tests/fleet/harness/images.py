"""Base images: one debootstrap tree a release, cached under a key of all that goes into it.

Hosts lay their own files over an image and never write to it. `python -m
tests.fleet.harness.images` builds what the cache lacks ahead of a test run.
"""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

from tests.fleet.harness.local import locked, run, usual_umask

Release = Literal["bullseye", "bookworm", "trixie"]
RELEASES: tuple[Release, ...] = get_args(Release)

# A build takes one to three minutes; a slow mirror on a busy machine may take ten.
BUILD_S = 900.0

_PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "dbus-user-session", "libpam-systemd"),
    *("openssh-server", "sudo", "fish", "csh", "procps", "iproute2", "iptables"),
    *("python3", "python3-numpy", "python3-zeroconf", "avahi-daemon", "sshfs", "faketime"),
)
_SETUP = Path(__file__).with_name("image-setup.sh")
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_PUBLIC_MIRROR = "http://deb.debian.org/debian"
_MIRROR_LINE = re.compile(r"^(?:URIs:|deb (?:\[[^\]]*\] )?)\s*(\S+/debian)/?(?:\s|$)", re.MULTILINE)

# A private process namespace that dies with us: a killed run leaves no debootstrap behind, and
# what it had mounted inside the tree goes with its mount namespace.
_CONFINED = (
    *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"),
    *("--mount-proc", "nice"),
)


def cache_dir() -> Path:
    """Return where images are kept between runs."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "rlxdeploy-fleet"


def mirror() -> str:
    """Return FLEET_MIRROR, else this machine's own Debian mirror, else Debian's public one."""
    if chosen := os.environ.get("FLEET_MIRROR"):
        return chosen
    apt = Path("/etc/apt")
    for file in (apt / "sources.list", *sorted(apt.glob("sources.list.d/*"))):
        if file.is_file() and (found := _MIRROR_LINE.search(file.read_text())):
            return found[1]
    return _PUBLIC_MIRROR


def image(release: Release, say: Callable[[str], None]) -> Path:
    """Return the base image of *release*, built now if the cache lacks it.

    Raises FleetError when the build fails or another run does not finish its own in time.
    """
    recipe = "\n".join((release, *_PACKAGES, _SETUP.read_text()))
    name = f"{release}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    ready = cache_dir() / name
    if not ready.is_dir():
        say(f"fleet: building the {release} image in {ready.parent}, once, for some minutes")
        with usual_umask(), locked(ready.with_name(f"{name}.lock"), BUILD_S):
            if not ready.is_dir():
                _build(release, ready)
    return ready


def _build(release: Release, ready: Path) -> None:
    draft = ready.with_name(f"{ready.name}.draft")
    if draft.exists():
        shutil.rmtree(draft)
    draft.mkdir()
    strap = ("debootstrap", f"--keyring={_KEYRING}", "--variant=minbase")
    packages = f"--include={','.join(_PACKAGES)}"
    run((*_CONFINED, *strap, packages, release, str(draft), mirror()), timeout=BUILD_S)
    clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    inside = (*_CONFINED, "chroot", str(draft), "sh", "-s")
    run(inside, stdin=_SETUP.read_text(), timeout=BUILD_S, env=clean)
    draft.rename(ready)


if __name__ == "__main__":
    for each in RELEASES:
        path = image(each, lambda line: print(line, file=sys.stderr))  # noqa: T201 - a command
        print(path)  # noqa: T201 - a command of its own, run by hand or by CI
