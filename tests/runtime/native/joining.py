"""Ranks of the native wire in one process, from their environment to a group that computes."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any, List

import numpy as np

from rlxdeploy.runtime.group import ProcessGroup
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.node import Node
from tests.runtime.cluster import environment, in_threads, outcome

QUICK = Limits(hello_s=0.3, dial_s=0.5, refused_s=0.5)


def new_key(path: Path, mode: int = 0o600) -> Path:
    """Return *path* as the file of a fresh key."""
    path.touch(mode)
    path.write_text(os.urandom(32).hex())
    path.chmod(mode)
    return path


def node(peers: List[str], rank: int, topology: str = "mesh", **more: str) -> Node:
    """Return a rank of a job; *more* overrides its environment."""
    told = environment(
        rank,
        peers,
        topology,
        **{"RLX_WIRE": "native", "RLX_JOB": "job", "RLX_PLAN": "plan", **more},
    )
    return Node.from_env(told, limits=QUICK).timeout(10)


def joined(nodes: List[Node]) -> List[Any]:
    """Let all join at once; return groups, or what they raised."""
    return in_threads([outcome(each.connect) for each in nodes])


def working(groups: List[ProcessGroup]) -> None:
    """Check that the groups compute, then end them."""

    def work(group: ProcessGroup) -> float:
        with group:
            return float(group.all_reduce(np.ones(1, np.float32))[0])

    results = in_threads([partial(work, group) for group in groups])
    assert results == [len(groups)] * len(groups)
