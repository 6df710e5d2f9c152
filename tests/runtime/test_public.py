"""What a program sees of the runtime: lazy names, and a join that its manager hears of."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from rlxdeploy import runtime
from rlxdeploy.runtime.errors import GroupError, SettingsError
from rlxdeploy.runtime.node import Node
from rlxdeploy.runtime.report import Reporter
from rlxdeploy.runtime.settings import Settings
from tests.runtime.cluster import Cluster, environment, fresh_host, in_threads, peers_on
from tests.runtime.processes import Manager


@pytest.mark.parametrize("name", runtime.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """Each is loaded when asked for, and listed."""
    assert getattr(runtime, name).__name__ == name
    assert name in dir(runtime)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As in any module."""
    with pytest.raises(AttributeError, match="no attribute 'Noed'"):
        _ = runtime.Noed


@pytest.mark.parametrize("module", ["runtime", "runtime.settings", "runtime.statefile"])
def test_settings_are_known_without_numpy(module: str) -> None:
    """The supervisor, the renderer and `status` run where numpy is not."""
    code = f"import sys, rlxdeploy.{module}; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_without_numpy_the_node_says_so(tmp_path: Path) -> None:
    """Exit code 78 and the interpreter at fault, not a traceback."""
    (tmp_path / "numpy.py").write_text("raise ImportError('No module named numpy')")
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-m", "rlxdeploy.runtime"],
        env={"PYTHONPATH": f"{tmp_path}:{root}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 78
    assert done.stderr == (
        f"rlx: {sys.executable}: No module named numpy; the runtime needs numpy\n"
    )


def test_connect_tells_the_manager_and_the_state_file(tmp_path: Path) -> None:
    """STATUS and READY when the links stand; a program that has left its group may still go on."""
    managers = [Manager(f"@{tmp_path}/0"), Manager(str(tmp_path / "1"))]
    peers = peers_on(fresh_host(), 2)
    nodes = [
        Node.from_env(
            environment(
                rank,
                peers,
                NOTIFY_SOCKET=managers[rank].address,
                RLX_STATE_FILE=str(tmp_path / f"{rank}.state"),
            )
        )
        for rank in range(2)
    ]
    cluster = Cluster(in_threads([node.connect for node in nodes]))
    states = [json.loads((tmp_path / f"{rank}.state").read_text()) for rank in range(2)]
    cluster.run(lambda group: group.barrier())
    cluster.close()

    assert [state["phase"] for state in states] == ["ready", "ready"]
    assert [state["digest"] for state in states] == [None, None]
    for rank, manager in enumerate(managers):
        assert manager.wait_for(f"STATUS=joined as rank {rank} of 2", 1)
        assert manager.wait_for("READY=1", 1)
        assert manager.wait_for("STATUS=left the group", 1)
        assert "STOPPING=1" not in manager.heard
        manager.close()
    assert not list(tmp_path.glob(".*"))


def test_a_manager_that_is_gone_is_said_once_and_ends_nothing(tmp_path: Path) -> None:
    """Notifications are told in vain, the group goes on."""
    said: List[str] = []
    environ = {"NOTIFY_SOCKET": str(tmp_path / "gone")}
    report = Reporter(Settings(), environ, said.append)
    report.ready()
    report.alive()
    report.ending()

    assert [line.partition(":")[0] for line in said] == [
        "joined as rank 0 of 1",
        f"NOTIFY_SOCKET '{tmp_path}/gone'",
        "leaving",
    ]


def test_a_state_file_that_goes_away_is_said_and_ends_nothing(tmp_path: Path) -> None:
    """At the start it is a wrong setting, later a line on stderr."""
    folder = tmp_path / "run"
    settings = Settings(state_file=str(folder / "0.state"))
    with pytest.raises(SettingsError, match="RLX_STATE_FILE"):
        Reporter(settings, {})

    folder.mkdir()
    said: List[str] = []
    report = Reporter(settings, {}, said.append)
    (folder / "0.state").unlink()
    folder.rmdir()
    report.ready()

    assert [line[:14] for line in said] == ["RLX_STATE_FILE", "joined as rank"]


def test_a_failed_join_is_in_the_state_file(tmp_path: Path) -> None:
    """`status` can say why a program's rank is not there."""
    state = tmp_path / "state"
    environ = environment(
        0, peers_on(fresh_host(), 2), RLX_STATE_FILE=str(state), RLX_JOIN_TIMEOUT="0.2"
    )
    with pytest.raises(GroupError):
        Node.from_env(environ).connect()

    content = json.loads(state.read_text())
    assert content["phase"] == "leaving"
    assert "still missing rank 1" in content["error"]
    assert content["missing"] == [1]


def test_a_program_of_one_rank_needs_no_network() -> None:
    """`Node().connect()` is a group of one."""
    with Node().connect() as group:
        group.barrier()
        assert (group.rank, group.world, group.is_leader) == (0, 1, True)
