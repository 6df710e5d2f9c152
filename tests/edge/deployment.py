"""A job of process launch on this machine, in folders of the test's own."""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlxdeploy.edge.apply import Carried, Manner, Patience, carried_out
from rlxdeploy.edge.archive import runtime_archive
from rlxdeploy.edge.local import LocalSession
from rlxdeploy.edge.session import OpenSession
from rlxdeploy.model.files import HostFiles, RemoteFile, RemoteFiles
from rlxdeploy.model.host import Host, Tree
from rlxdeploy.model.plan import HostPlan, Plan, RankRow
from rlxdeploy.model.step import (
    InstallFile,
    MarkDeployment,
    PruneReleases,
    ReleasedFile,
    RemoveJob,
    StageRelease,
    StartRanks,
    Step,
    StopRanks,
    StoreFile,
    SwitchRelease,
)

# The shells that hosts have for /bin/sh, as far as this machine has them.
SHELLS = {
    name: (path, *words)
    for name, words in {"dash": (), "bash": ("--posix",), "busybox": ("sh",)}.items()
    if (path := shutil.which(name))
}

JOB = "t"
QUICK = Patience(stage=20, go=40, hold=60, bye=10)
SLEEPER = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)")


@dataclass
class Lab:
    """One host, this one; *shell* is what the session starts."""

    folder: Path
    name: str = "local"
    shell: tuple[str, ...] = ("/bin/sh",)
    said: list[tuple[str, str]] = field(default_factory=list)

    @property
    def tree(self) -> Tree:
        return Tree(JOB, str(self.folder / "share" / "rlx"), str(self.folder / "runtime" / "rlx"))

    @property
    def home(self) -> Path:
        return Path(self.tree.home)

    def open(self, host: Host, deadline: float) -> LocalSession:
        del deadline
        return LocalSession(host, self.shell)

    def files(
        self,
        release: str,
        argv: Sequence[str] = SLEEPER,
        ranks: Sequence[int] = (0,),
        **told: object,
    ) -> RemoteFiles:
        archive = RemoteFile("", runtime_archive(), 0o644, "runtime")
        released = [one for rank in ranks for one in self._rank(rank, argv, archive, told)]
        host = HostFiles(self.name, tuple(released), (), (archive,))
        return RemoteFiles({self.name: host}, release, f"plan-{release}", 1)

    def _rank(
        self, rank: int, argv: Sequence[str], archive: RemoteFile, told: Mapping[str, object]
    ) -> tuple[RemoteFile, RemoteFile]:
        tree = self.tree
        process = {
            "format": 1,
            "job": JOB,
            "rank": rank,
            "argv": list(argv),
            "workdir": tree.current,
            "env_file": tree.env_file(rank),
            "restart": "on-failure",
            "ready": "exec",
            "join_timeout": 30,
            "restart_s": 0.2,
            "start_limit_interval_s": 60,
            "start_limit_burst": 20,
            "restart_prevent": [64, 65, 78],
            "stop_timeout_s": 5,
            "watchdog_s": None,
            "supervisor_file": tree.supervisor_file(rank),
            "log_file": tree.log_file(rank),
            "plan": "p",
            **told,
        }
        env = f'RANK="{rank}"\nPYTHONPATH="{tree.stored(archive.digest)}"\n'
        return (
            RemoteFile(f"env/{rank}.env", env.encode(), 0o600, "test"),
            RemoteFile(f"process/{rank}.json", json.dumps(process).encode(), 0o600, "test"),
        )

    def apply_plan(self, files: RemoteFiles, ranks: tuple[int, ...] = (0,)) -> Plan:
        host = files.hosts[self.name]
        archive = host.stored[0]
        released = tuple(
            ReleasedFile(one.path, one.digest, len(one.content), one.mode) for one in host.released
        )
        stage: tuple[Step, ...] = (
            StoreFile(archive.digest, len(archive.content)),
            StageRelease(files.release, released),
        )
        supervisor = (
            "/usr/bin/env",
            f"PYTHONPATH={self.tree.stored(archive.digest)}",
            sys.executable,
            "-m",
            "rlxdeploy.runtime.supervisor",
        )
        go: tuple[Step, ...] = (
            StopRanks(ranks),
            SwitchRelease(files.release),
            *(
                InstallFile(one.path, one.digest, len(one.content), one.mode)
                for one in host.installed
            ),
            MarkDeployment({"deployment": "d1"}),
            StartRanks(ranks, boot=False, release=files.release, supervisor=supervisor),
            PruneReleases(3),
        )
        return self.plan(stage, go, ranks)

    def destroy_plan(self, ranks: tuple[int, ...] = (0,)) -> Plan:
        return self.plan((), (StopRanks(ranks, disable=True), RemoveJob()), ranks)

    def plan(
        self, stage: tuple[Step, ...], go: tuple[Step, ...], ranks: tuple[int, ...] = (0,)
    ) -> Plan:
        host = Host(self.name)
        part = HostPlan(host, self.tree, "process", stage=stage, go=go)
        rows = tuple(
            RankRow(rank, self.name, self.name, "cpu", "127.0.0.1:29500", "process", "start")
            for rank in ranks
        )
        return Plan(
            JOB, len(ranks), "mesh", "r", "p", 1, "d1", "exec", 20.0, {self.name: part}, rows
        )

    def carry_out(self, plan: Plan, files: RemoteFiles | None = None, **changes: float) -> Carried:
        patience = replace(QUICK, **changes)
        manner = Manner("ann@desk: apply", patience=patience, tell=self._tell)
        with carried_out(plan, files, self.open_session, manner) as carried:
            return carried

    @property
    def open_session(self) -> OpenSession:
        return self.open

    def _tell(self, host: str, what: str) -> None:
        self.said.append((host, what))

    def record(self, rank: int = 0) -> dict[str, Any]:
        path = Path(self.tree.supervisor_file(rank))
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document


def listing(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return every file below *folder* with its inode, mode and time of change."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_ino,
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
        if not path.is_socket()
    }


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return (
        not stat.exists() or stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    )
