"""Files on a host are replaced whole or not at all, and secrets are at no moment for others.

Real shells, as root and as somebody else, with the umask that most hosts have.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rlxdeploy.edge.apply import Carried
from rlxdeploy.model.files import HostFiles, RemoteFile, RemoteFiles
from rlxdeploy.model.step import InstallFile, ReleasedFile, StageRelease, Step, SwitchRelease
from tests.edge.deployment import SHELLS, Lab, listing

NOBODY = 65534
TOKEN = b"token-7f3a"
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root becomes somebody else")

AS = {
    "root": (),
    "nobody": ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
}
# busybox takes its own applets before those in PATH, so that nobody can watch them from there.
WATCHED = {name: shell for name, shell in SHELLS.items() if name != "busybox"}


@pytest.fixture(params=list(AS.values()), ids=list(AS))
def prefix(request: pytest.FixtureRequest) -> tuple[str, ...]:
    words: tuple[str, ...] = request.param
    return words


@pytest.fixture
def folder(prefix: tuple[str, ...]) -> Iterator[Path]:
    """A folder that belongs to whoever does the deeds; pytest's own are root's alone."""
    made = Path(tempfile.mkdtemp(prefix="rlx-files-", dir="/tmp"))
    if prefix:
        os.chown(made, NOBODY, NOBODY)
    before = os.umask(0o022)
    yield made
    os.umask(before)
    shutil.rmtree(made)


@pytest.fixture(params=list(WATCHED.values()), ids=list(WATCHED))
def lab(folder: Path, prefix: tuple[str, ...], request: pytest.FixtureRequest) -> Lab:
    return Lab(folder, shell=(*prefix, *request.param))


def secrets(lab: Lab, release: str, *, unit_at: Path, owner: str = "") -> RemoteFiles:
    """Return an environment file and the job's key, both secret, and a unit that is not."""
    content = TOKEN + release.encode() * 40_000
    env = RemoteFile("env/0.env", content, 0o600, "test", secret=True)
    key = RemoteFile(lab.tree.key, content, 0o600, "test", secret=True, owner=owner)
    unit = RemoteFile(str(unit_at), f"[Unit] {release}\n".encode(), 0o644, "test", owner=owner)
    host = HostFiles(lab.name, (env,), (unit,), (), key)
    return RemoteFiles({lab.name: host}, release, f"plan-{release}", 1)


def apply(lab: Lab, files: RemoteFiles) -> Carried:
    host = files.hosts[lab.name]
    assert host.key is not None
    env, unit, key = host.released[0], host.installed[0], host.key
    released = (ReleasedFile(env.path, env.digest, len(env.content), env.mode),)
    stage: tuple[Step, ...] = (StageRelease(files.release, released),)
    go: tuple[Step, ...] = (
        SwitchRelease(files.release),
        InstallFile(unit.path, unit.digest, len(unit.content), unit.mode, unit.owner),
        InstallFile(key.path, "", len(key.content), key.mode, key.owner),
    )
    return lab.carry_out(lab.plan(stage, go), files)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Standing:
    """A release that lies on the host, and what it has to be after another one has failed."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.unit = lab.folder / "units" / "rlx-t@.service"
        carried = apply(lab, secrets(lab, "r1", unit_at=self.unit))
        assert not carried.outcomes.failed
        self.before = listing(lab.folder), contents(lab.folder)

    def refuses(self, lab: Lab, owner: str = "") -> str:
        """Have the next release fail and change nothing; return why."""
        carried = apply(lab, secrets(lab, "r2", unit_at=self.unit, owner=owner))

        assert not carried.went
        assert contents(self.lab.folder) == self.before[1]
        now = listing(self.lab.folder)
        assert now.keys() == self.before[0].keys()
        # The list of folders that we made is written anew, with the same content.
        files = {path for path in now if (self.lab.folder / path).is_file()} - {"share/rlx/.made"}
        assert {path: now[path] for path in files} == {path: self.before[0][path] for path in files}
        return str(carried.outcomes.failed[lab.name])


@pytest.mark.parametrize("owner", ["no-such-account", "no-such-account:root"])
def test_an_owner_that_has_vanished_leaves_the_old_file(lab: Lab, owner: str) -> None:
    """A failing chown is the reason given, the file in place is untouched, nothing lies beside."""
    why = Standing(lab).refuses(lab, owner)

    assert f"write {lab.folder}/units/rlx-t@.service: chown:" in why


@pytest.mark.parametrize("prefix", [AS["nobody"]], ids=["nobody"], indirect=True)
def test_an_owner_that_may_not_be_given_leaves_the_old_file(lab: Lab) -> None:
    """Without root a file cannot be given away; nothing is left of the attempt."""
    assert "chown:" in Standing(lab).refuses(lab, "root")


def test_a_folder_that_takes_nothing_leaves_the_old_file(lab: Lab, prefix: tuple[str, ...]) -> None:
    """On a read-only mount, or in somebody else's folder, nothing is written and nothing lost."""
    standing = Standing(lab)
    units = standing.unit.parent
    if prefix:
        os.chown(units, 0, 0)
        standing.before = listing(lab.folder), standing.before[1]
        shut = lab
    else:
        mounted = f'mount --bind {units} {units} && mount -o remount,bind,ro {units} && exec "$@"'
        closed = ("unshare", "--mount", "sh", "-c", mounted, "sh", *lab.shell)
        shut = replace(lab, shell=closed)
    why = standing.refuses(shut)

    assert f"write {standing.unit}:" in why


# Looks at the files at every call of a tool, which is between any two things that the shell does.
SPY = """\
#!/bin/sh
look() {{
  /usr/bin/find {folder} -type f -exec /bin/grep -lF {token} {{}} + | while read -r file; do
    echo "$(/usr/bin/stat -c '%a %n' "$file") at {tool}" >>{log}
  done 2>/dev/null
}}
look
{real} "$@"
status=$?
look
exit $status
"""
TOOLS = ("chmod", "chown", "head", "tail", "wc", "sync", "mv")


def test_a_secret_is_never_for_others_to_read(
    lab: Lab, prefix: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under umask 022 no file that holds the secret has a bit for group or others, at no moment."""
    unit = Standing(lab).unit
    tools = lab.folder / "tools"
    tools.mkdir(mode=0o755)
    log = tools / "log"
    log.touch()
    log.chmod(0o666)
    words = {"folder": lab.folder / "share", "token": TOKEN.decode(), "log": log}
    for tool in TOOLS:
        (tools / tool).write_text(SPY.format(tool=tool, real=shutil.which(tool), **words))
        (tools / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    owner = "" if prefix else "nobody"
    assert not apply(lab, secrets(lab, "r2", unit_at=unit, owner=owner)).outcomes.failed

    seen = [line.split(" ", 1) for line in log.read_text().splitlines()]
    places = {Path(where.partition(" at ")[0]).name for _, where in seen}
    assert {"payload.tmp", "0.env", "key.rlx-new", "key"} <= places
    assert [line for line in seen if int(line[0], 8) & 0o077] == []
    assert unit.stat().st_mode & 0o777 == 0o644
    assert {path.stat().st_uid for path in (unit, lab.home / "key")} == {NOBODY}
