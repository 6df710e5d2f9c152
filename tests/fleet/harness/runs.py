"""Runs: who owns what, and how all of it is found again by its token alone.

Every run has a directory under BASE, a lock in it that its reaper holds while it lives, and one
cgroup subtree. A directory whose lock is free belongs to nobody any more and is swept by whoever
comes next. The first run raises the kernel's limits, the last one puts them back.
"""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.fleet.harness.local import FleetError, locked, run, try_lock, wait_until

BASE = Path("/run/rlxdeploy-fleet")
REGISTRY_LOCK = Path("/run/lock/rlxdeploy-fleet.lock")
REGISTRY_S = 60.0
SWEEP_S = 30.0

# Every systemd takes some inotify instances and runs out at about the 22nd host; the neighbour
# table is one for all namespaces, and 48 hosts in a mesh fill 2,256 places for each family.
_LIMITS = {
    "fs/inotify/max_user_instances": 8192,
    "fs/inotify/max_user_watches": 1048576,
    "net/ipv4/neigh/default/gc_thresh2": 16384,
    "net/ipv4/neigh/default/gc_thresh3": 16384,
    "net/ipv6/neigh/default/gc_thresh2": 16384,
    "net/ipv6/neigh/default/gc_thresh3": 16384,
}
_ORIGINALS = BASE / "sysctls.json"
_NSPAWN_STATE = Path("/run/systemd/nspawn")


def enlist(token: str) -> Path:
    """Return a new directory for the run *token*, with the machine made ready for it.

    The caller holds the registry's lock until the run's reaper lives.
    """
    BASE.mkdir(exist_ok=True)
    for other in _tokens():
        if not _lives(other):
            sweep(other)
            shutil.rmtree(BASE / other)
    _raise_limits()
    home = BASE / token
    home.mkdir()
    return home


def strike(token: str) -> None:
    """End the run *token*: sweep what it left, forget it, and let the last one tidy up."""
    sweep(token)
    with locked(REGISTRY_LOCK, REGISTRY_S):
        shutil.rmtree(BASE / token)
        if not _tokens():
            _restore_limits()
            BASE.rmdir()


def sweep(token: str) -> None:
    """Leave no process, mount, namespace or cgroup of the run *token*."""
    wait_until(lambda: _kill(token), SWEEP_S)
    for point in reversed(_mounts(token)):
        run(("umount", "--lazy", point))
    for namespace in Path("/run/netns").glob(f"{token}-*"):
        run(("ip", "netns", "delete", namespace.name))
    drop_cgroup(token)
    for path in _NSPAWN_STATE.glob(f"*/{token}-*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if left := _mounts(token):
        raise FleetError(f"still mounted: {left}")


def cgroups(name: str) -> list[Path]:
    """Return where the cgroup *name* is, or would be, in the hierarchies that systemd uses."""
    tops = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, options, *_ = line.split()
        if kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options.split(",")):
            tops.append(Path(point))
    return [top / name for top in tops]


def members(name: str) -> set[int]:
    """Return the processes in the cgroup *name* and below."""
    return {pid for group in _groups(name) for pid in _pids(group / "cgroup.procs")}


def drop_cgroup(name: str) -> None:
    """Remove the cgroup *name* and those below, once their last processes are gone."""
    for group in _groups(name):
        wait_until(partial(_busy, group), SWEEP_S)


def _groups(name: str) -> Iterator[Path]:
    """Yield what is below first; unlike glob, walk does not mind groups that go meanwhile."""
    for top in cgroups(name):
        yield from (Path(path) for path, _, _ in os.walk(top, topdown=False))


def _busy(group: Path) -> str:
    try:
        group.rmdir()
    except FileNotFoundError:
        return ""
    except OSError as why:
        return f"an empty {group}: {why}"
    return ""


def _pids(file: Path) -> list[int]:
    try:
        return [int(line) for line in file.read_text().split()]
    except OSError:  # the group, or in a threaded one the right to ask, has just gone
        return []


def _kill(token: str) -> str:
    alive = members(token)
    for pid in alive:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return f"the end of processes {sorted(alive)}" if alive else ""


def _mounts(token: str) -> list[str]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    points = [line.split()[1] for line in lines]
    places = (f"{BASE / token}/", f"{_NSPAWN_STATE}/")
    return [point for point in points if point.startswith(places) and token in point]


def _tokens() -> list[str]:
    return [path.name for path in BASE.iterdir() if path.is_dir()]


def alive_file(token: str) -> Path:
    """Return the file whose lock says that the run's reaper lives."""
    return BASE / token / "alive"


def _lives(token: str) -> bool:
    with alive_file(token).open("a") as handle:
        return not try_lock(handle.fileno())


def _raise_limits() -> None:
    found = {name: int(Path("/proc/sys", name).read_text()) for name in _LIMITS}
    if not _ORIGINALS.exists():
        _ORIGINALS.write_text(json.dumps(found))
    for name, least in _LIMITS.items():
        Path("/proc/sys", name).write_text(str(max(least, found[name])))


def _restore_limits() -> None:
    for name, value in json.loads(_ORIGINALS.read_text()).items():
        Path("/proc/sys", name).write_text(str(value))
    _ORIGINALS.unlink()
