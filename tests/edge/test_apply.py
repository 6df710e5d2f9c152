"""A plan carried out on this machine by a real shell and real supervisors."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rlxdeploy.edge.apply import Carried, Manner, Patience, carried_out
from rlxdeploy.edge.local import LocalSession
from rlxdeploy.edge.session import Session
from rlxdeploy.errors import HostError, Locked, Overtaken, Refused, Unreachable
from rlxdeploy.model.files import RemoteFile, RemoteFiles
from rlxdeploy.model.host import Host
from rlxdeploy.model.plan import WayBack
from rlxdeploy.model.step import PruneReleases, StoreFile
from tests.edge.deployment import QUICK, Lab, alive, listing


def up(lab: Lab, release: str = "r1", files: RemoteFiles | None = None) -> RemoteFiles:
    wanted = files or lab.files(release)
    carried = lab.carry_out(lab.apply_plan(wanted), wanted)
    assert not carried.outcomes.failed
    return wanted


def with_installed(lab: Lab, path: Path, content: bytes = b"unit\n") -> RemoteFiles:
    files = lab.files("r1")
    file = RemoteFile(str(path), content, 0o640, "test")
    host = replace(files.hosts[lab.name], installed=(file,))
    return replace(files, hosts={lab.name: host})


def test_an_apply_starts_and_a_destroy_leaves_nothing(lab: Lab) -> None:
    """What was there before is there after, and no process is left."""
    before = listing(lab.folder)
    files = lab.files("r1", ranks=(0, 1))
    carried = lab.carry_out(lab.apply_plan(files, (0, 1)), files)
    records = [lab.record(0), lab.record(1)]

    assert carried.went
    assert not carried.outcomes.failed
    assert all(alive(record["pid"]) for record in records)
    assert (lab.home / "current").resolve() == lab.home / "releases" / "r1"
    assert (lab.home / "current/env/0.env").stat().st_mode & 0o777 == 0o600
    assert (lab.home / "deployment.json").stat().st_mode & 0o777 == 0o600
    assert not (lab.home / "lock").exists()
    assert not lab.carry_out(lab.destroy_plan((0, 1))).outcomes.failed
    assert not any(alive(r[who]) for r in records for who in ("pid", "supervisor_pid"))
    assert listing(lab.folder).keys() == before.keys()


def test_a_destroy_leaves_what_another_job_has(lab: Lab) -> None:
    """The store and the folders stay as long as somebody else is in them."""
    up(lab)
    neighbour = lab.home.parent / "other" / "releases" / "x" / "env"
    neighbour.mkdir(parents=True)
    stored = next(path for path in (lab.home.parent / "store").iterdir())
    (neighbour / "0.env").write_text(f'PYTHONPATH="{stored}"\n')
    lab.carry_out(lab.destroy_plan())

    assert not lab.home.exists()
    assert stored.exists()
    shutil.rmtree(neighbour.parents[2])
    up(lab)


def test_an_empty_plan_opens_no_session(lab: Lab) -> None:
    """A second apply has nothing to say to anybody: nothing on the host can change."""
    up(lab)
    before, record = listing(lab.folder), lab.record()

    def refuse(host: Host, deadline: float) -> Session:
        raise AssertionError((host, deadline))

    with carried_out(lab.plan((), ()), None, refuse, Manner("ann")) as carried:
        assert (carried.outcomes.done, carried.outcomes.failed) == ({}, {})
    assert (listing(lab.folder), lab.record()) == (before, record)


def test_a_new_release_replaces_the_running_one(lab: Lab) -> None:
    """The old process is gone, the new one runs from `current`, and three releases are kept."""
    up(lab)
    first = lab.record()
    for age, release in ((30, "r2"), (20, "r3"), (10, "r4")):
        newest = (lab.home / "current").resolve()
        os.utime(newest, (newest.stat().st_mtime - age,) * 2)
        up(lab, release)
    kept = sorted(path.name for path in (lab.home / "releases").iterdir())

    assert not alive(first["pid"])
    assert lab.record()["release"] == "r4"
    assert (lab.home / "current").readlink() == Path("releases/r4")
    assert kept == ["r2", "r3", "r4"]


def test_a_stored_file_goes_with_the_last_release_that_names_it(lab: Lab) -> None:
    """The store is swept when releases are pruned, and never of what is in use."""
    up(lab)
    stray = lab.home.parent / "store" / ("0" * 64)
    stray.write_bytes(b"x")
    up(lab, "r2")

    assert not stray.exists()
    assert len(list((lab.home.parent / "store").glob("[0-9a-f]*"))) == 1


def test_a_stored_file_that_was_seen_and_has_gone_is_missed_before_go(lab: Lab) -> None:
    """It was not sent, as the host had it; without it no rank of the release could start."""
    up(lab)
    (archive,) = (lab.home.parent / "store").glob("[0-9a-f]*")
    files = lab.files("r2")
    plan = lab.apply_plan(files)
    part = plan.hosts[lab.name]
    unsent = replace(part, stage=tuple(s for s in part.stage if not isinstance(s, StoreFile)))
    plan = replace(plan, hosts={lab.name: unsent})

    assert lab.carry_out(plan, files).outcomes.failed == {}
    archive.unlink()
    failed = lab.carry_out(plan, files).outcomes.failed[lab.name]
    assert f"{archive} has gone since the plan was made" in failed.why
    assert (lab.home / "current").readlink() == Path("releases/r2")


def test_a_release_of_the_same_name_is_mended(lab: Lab) -> None:
    """What was changed, added or made a link is as planned; the job's own files and folder stay."""
    files = up(lab)
    release = lab.home / "releases" / "r1"
    env, process = release / "env" / "0.env", release / "process" / "0.json"
    wanted, folder = (env.read_bytes(), process.read_bytes()), release.stat().st_ino
    env.write_bytes(b"RANK=7\n")
    (release / "env" / "9.env").touch()
    process.rename(lab.folder / "elsewhere")
    process.symlink_to(lab.folder / "elsewhere")
    (release / "checkpoint").write_bytes(b"precious")
    stored = next((lab.home.parent / "store").glob("[0-9a-f]*"))
    archive = stored.read_bytes()
    stored.write_bytes(archive[:-1] + bytes([archive[-1] ^ 1]))
    up(lab, files=files)

    assert (env.read_bytes(), process.read_bytes()) == wanted
    assert (process.is_symlink(), process.stat().st_mode & 0o777) == (False, 0o600)
    assert [path.name for path in (release / "env").iterdir()] == ["0.env"]
    assert (release / "checkpoint").read_bytes() == b"precious"
    assert release.stat().st_ino == folder
    assert stored.read_bytes() == archive
    assert not list((lab.home / "releases").glob("*.tmp"))


def test_a_rank_whose_supervisor_was_killed_is_stopped_all_the_same(lab: Lab) -> None:
    """An orphan is found by its number and start, and does not live beside its successor."""
    up(lab)
    record = lab.record()
    os.kill(record["supervisor_pid"], signal.SIGKILL)
    up(lab, "r2")

    assert not alive(record["pid"])
    assert alive(lab.record()["pid"])


def test_a_file_elsewhere_is_replaced_whole_and_goes_with_the_job(lab: Lab) -> None:
    """An installed file has its mode, and a destroy takes it with the folders made for it."""
    before = listing(lab.folder)
    path = lab.folder / "srv" / "train" / "a file"
    up(lab, files=with_installed(lab, path))

    assert path.read_bytes() == b"unit\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in path.parent.iterdir()] == ["a file"]
    lab.carry_out(lab.destroy_plan())
    assert listing(lab.folder).keys() == before.keys()


def refused(lab: Lab, files: RemoteFiles) -> HostError:
    carried = lab.carry_out(lab.apply_plan(files), files)
    assert not carried.went
    assert not carried.outcomes.done
    return carried.outcomes.failed[lab.name]


def test_a_link_in_place_of_a_file_is_refused(lab: Lab) -> None:
    """The link's target is untouched, and so is everything else."""
    target, link = lab.folder / "target", lab.folder / "link"
    target.write_bytes(b"precious")
    link.symlink_to(target)
    before = listing(lab.folder)
    error = refused(lab, with_installed(lab, link))

    assert isinstance(error, Refused)
    assert f"{link} is a symbolic link; remove it or name its target" in error.why
    assert target.read_bytes() == b"precious"
    assert listing(lab.folder) == before


def test_a_home_that_cannot_be_made_is_named(lab: Lab) -> None:
    """A file where a folder has to be: the folder is in the message and nothing is left."""
    (lab.folder / "share").write_bytes(b"")
    error = refused(lab, lab.files("r1"))
    (lab.folder / "share").unlink()

    assert f"make the folder {lab.home}" in error.why


def mounted(folder: Path, options: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small or a read-only file system")
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)


def fill(path: Path) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(file, bytes(4096)):
            pass
    os.close(file)


@pytest.fixture
def small(lab: Lab) -> Iterator[Lab]:
    share = lab.folder / "share"
    share.mkdir()
    mounted(share, "size=96k")
    yield lab
    (share / "filler").unlink()
    lab.carry_out(lab.destroy_plan())
    subprocess.run(["/bin/umount", str(share)], check=True)


def test_a_full_disk_changes_nothing(small: Lab) -> None:
    """The message says that the disk is full, and what was there is as it was."""
    filler = small.folder / "share" / "filler"
    filler.write_bytes(bytes(88 << 10))
    before = listing(small.folder)
    error = refused(small, small.files("r1"))
    after = listing(small.folder)

    assert "is full" in error.why
    assert after.keys() == before.keys()


@pytest.mark.parametrize("room", [0, 4096, 32768])
def test_a_disk_that_fills_up_leaves_the_running_release_alone(small: Lab, room: int) -> None:
    """A second apply without room fails before GO: the first release runs on."""
    subprocess.run(["/bin/mount", "-o", "remount,size=8m", str(small.folder / "share")], check=True)
    up(small)
    record = small.record()
    filler = small.folder / "share" / "filler"
    fill(filler)
    os.truncate(filler, filler.stat().st_size - room)
    before = listing(small.home)
    error = refused(small, small.files("r2"))
    after = listing(small.home)

    assert "is full" in error.why
    assert after.keys() == before.keys()
    assert small.record() == record
    assert alive(record["pid"])


def test_a_read_only_home_is_named(lab: Lab) -> None:
    """Nothing can be made there, and the message says what and why."""
    share = lab.folder / "share"
    share.mkdir()
    mounted(share, "ro")
    error = refused(lab, lab.files("r1"))
    subprocess.run(["/bin/umount", str(share)], check=True)
    share.rmdir()

    assert "make the folder" in error.why
    assert "ead-only" in error.why


def an_hour_ago(lab: Lab) -> None:
    """Have the lock be an hour old, by what the kernel counts."""
    lock = lab.home / "lock"
    text = lock.read_text(encoding="utf-8")
    older = re.sub(r"(?m)^up=(\d+)$", lambda found: f"up={int(found[1]) - 3600}", text)
    assert older != text
    lock.write_text(older, encoding="utf-8")


def clock_set_back(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    date = lab.folder / "bin" / "date"
    date.parent.mkdir()
    date.write_text("#!/bin/sh\necho 1000\n", encoding="utf-8")
    date.chmod(0o755)
    monkeypatch.setenv("PATH", f"{date.parent}:{os.environ['PATH']}")


def test_a_locked_host_names_who_holds_it(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second apply learns who, what and for how long, however the host's clock was set since.

    The lock goes when the first is done.
    """
    files = lab.files("r1")
    manner = Manner("ann@desk: apply /lab/inventory.toml", patience=QUICK)
    with carried_out(lab.apply_plan(files), files, lab.open_session, manner) as first:
        an_hour_ago(lab)
        clock_set_back(lab, monkeypatch)
        error = refused(lab, lab.files("r2"))
        assert not first.outcomes.failed

    assert isinstance(error, Locked)
    said = r"held by ann@desk: apply /lab/inventory\.toml, pid \d+, for (\d+) s"
    found = re.fullmatch(said, error.why)
    assert found, error.why
    assert 3600 <= int(found[1]) < 7200
    assert lab.record()["release"] == "r1"
    assert not lab.carry_out(lab.plan((), lab.destroy_plan().hosts["local"].go)).outcomes.failed


# Two shells at once, on a machine that has much else to do.
LONG = Patience(stage=90, go=90, hold=90, bye=60, rival=60)


@dataclass
class Rival:
    """One of two applies for the hosts a and b; it comes to *late* once the other has staged it."""

    by: str
    late: str
    labs: Mapping[str, Lab]
    written: list[str]
    staged: dict[str, threading.Event] = field(
        default_factory=lambda: {"a": threading.Event(), "b": threading.Event()}
    )

    def run(self, other: "Rival") -> Carried:
        """Carry out a plan that starts nothing, when *other* does."""
        parts = {name: lab.plan((), (PruneReleases(3),)) for name, lab in self.labs.items()}
        hosts = {name: part.hosts[name] for name, part in parts.items()}
        first = other.staged[self.late]

        def open_session(host: Host, _deadline: float) -> Session:
            if host.name == self.late:
                assert first.wait(LONG.stage)
            return LocalSession(host, ("/bin/sh",))

        def tell(host: str, what: str) -> None:
            if what == "staged":
                self.staged[host].set()

        manner = Manner(self.by, patience=LONG, tell=tell, ledger=self.ledger())
        plan = replace(parts["a"], hosts=hosts)
        with carried_out(plan, None, open_session, manner) as carried:
            return carried

    @contextlib.contextmanager
    def ledger(self) -> Iterator[None]:
        """Note when this apply writes, and which locks there are then."""
        for when in ("before", "after"):
            held = [name for name, lab in self.labs.items() if (lab.home / "lock").exists()]
            self.written.append(f"{self.by}: {when} with {' and '.join(held)} locked")
            if when == "before":
                yield


def test_of_two_applies_at_once_one_wins(tmp_path: Path) -> None:
    """Each has locked a host: who has the first one waits for the other's, which gives way.

    Only who wins writes down what it does, as long as all its hosts are locked.
    """
    (tmp_path / "runtime").mkdir()
    labs = {name: Lab(tmp_path / name, name) for name in ("a", "b")}
    written: list[str] = []
    ann, bob = Rival("ann", "b", labs, written), Rival("bob", "a", labs, written)
    with ThreadPoolExecutor(2) as pool:
        won, lost = pool.submit(ann.run, bob), pool.submit(bob.run, ann)
        winner, loser = won.result(), lost.result()

    assert (winner.went, sorted(winner.outcomes.done)) == (True, ["a", "b"])
    assert (loser.went, [*loser.outcomes.failed]) == (False, ["a"])
    assert isinstance(loser.outcomes.failed["a"], Locked)
    assert "held by ann, pid" in loser.outcomes.failed["a"].why
    assert written == [f"ann: {when} with a and b locked" for when in ("before", "after")]


def test_who_comes_after_another_apply_is_refused(lab: Lab) -> None:
    """What a plan was made from has to stand yet once the lock is had; then nothing is changed."""
    late, first = lab.files("r2"), up(lab)
    pid, plan = lab.record()["pid"], lab.apply_plan(late)
    for seen, said in (("", "not none"), ("r0", "not r0")):
        back = WayBack(60, (0,), late.plan, notify=False, stands=seen)
        part = replace(plan.hosts[lab.name], back=back)
        before = listing(lab.folder)
        carried = lab.carry_out(replace(plan, hosts={lab.name: part}), late)

        error = carried.outcomes.failed[lab.name]
        assert isinstance(error, Overtaken)
        assert f"release {first.release} stands there now and {said}" in error.why
        assert listing(lab.folder).keys() == before.keys()
        assert lab.record()["pid"] == pid


def with_absent(lab: Lab, manner: Manner) -> Carried:
    """Carry a plan out for this host and for one that cannot be reached."""
    files = lab.files("r1")
    plan = lab.apply_plan(files)
    absent = replace(plan.hosts["local"], host=Host("absent"))
    plan = replace(plan, hosts={**plan.hosts, "absent": absent})
    files = replace(files, hosts={**files.hosts, "absent": files.hosts["local"]})

    def open_session(host: Host, deadline: float) -> Session:
        if host.name == "absent":
            raise Unreachable("absent", "connect", "no route to host")
        return lab.open(host, deadline)

    with carried_out(plan, files, open_session, manner) as carried:
        return carried


TOO_MANY = {
    "none may": Manner("ann", patience=QUICK),
    "one may, but no rank's": Manner("ann", patience=QUICK, max_fail=1, spare=("local",)),
    "none may, of any": Manner("ann", patience=QUICK, spare=("absent",)),
}


@pytest.mark.parametrize("manner", TOO_MANY.values(), ids=TOO_MANY.keys())
def test_one_host_that_fails_keeps_all_from_going(lab: Lab, manner: Manner) -> None:
    """Staged hosts are undone when another does not come to STAGED; only the culprit is named."""
    before = listing(lab.folder)
    carried = with_absent(lab, manner)

    assert not carried.went
    assert list(carried.outcomes.failed) == ["absent"]
    assert listing(lab.folder).keys() == before.keys()


def test_the_others_go_without_a_host_that_may_fail(lab: Lab) -> None:
    """Before GO so many may fail as somebody said, if the others need none of them."""
    carried = with_absent(lab, Manner("ann", patience=QUICK, max_fail=1, spare=("absent",)))

    assert carried.went
    assert carried.missed == {"absent"}
    assert isinstance(carried.outcomes.failed["absent"], Unreachable)
    assert alive(lab.record()["pid"])


def test_a_step_that_fails_after_go_is_named(lab: Lab) -> None:
    """What a step complained of is the reason, and the lock is released."""
    files = lab.files("r1", ready="maybe")
    carried = lab.carry_out(lab.apply_plan(files), files)
    error = carried.outcomes.failed[lab.name]

    assert carried.went
    assert error.doing == "start rank 0"
    assert "ready may not be 'maybe'" in error.why
    assert not (lab.home / "lock").exists()


def test_a_silent_host_meets_our_deadline(lab: Lab) -> None:
    """A shell that never answers costs its deadline and no more."""
    hung = Lab(lab.folder, "local", (sys.executable, "-c", "import time; time.sleep(60)"))
    files = lab.files("r1")
    carried = hung.carry_out(lab.apply_plan(files), files, stage=1.0, bye=0.5)

    assert not carried.went
    assert "in time" in carried.outcomes.failed[lab.name].why


def test_an_interrupt_before_go_undoes_and_goes_on_up(lab: Lab) -> None:
    """Ctrl-C while hosts are being staged leaves nothing staged and no lock."""
    before = listing(lab.folder)
    files = lab.files("r1")

    def interrupt(_host: str, what: str) -> None:
        if what == "staged":
            os.kill(os.getpid(), signal.SIGINT)

    manner = Manner("ann", patience=QUICK, tell=interrupt)
    with (
        pytest.raises(KeyboardInterrupt),
        carried_out(lab.apply_plan(files), files, lab.open_session, manner),
    ):
        pass
    assert listing(lab.folder).keys() == before.keys()


def test_an_interrupt_after_go_waits_for_the_host_to_finish(lab: Lab) -> None:
    """Ctrl-C between steps does not leave a host between releases."""
    files = lab.files("r1")

    def interrupt(_host: str, what: str) -> None:
        if what.startswith("switch"):
            os.kill(os.getpid(), signal.SIGINT)

    manner = Manner("ann", patience=QUICK, tell=interrupt)
    with (
        pytest.raises(KeyboardInterrupt),
        carried_out(lab.apply_plan(files), files, lab.open_session, manner),
    ):
        pass
    assert alive(lab.record()["pid"])
    assert not (lab.home / "lock").exists()
