"""Random collectives among real processes, for long: right results, and nothing kept.

`make soak` runs the long form, 50,000 calls a wire; the short one is among the other tests.
Groups that are done leave a row in the file that SOAK_RECORD names; run again with the same file,
the soak goes on after them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import List, NamedTuple

import pytest

from tests.runtime.cluster import environment, fresh_host, peers_on

MIB = 1 << 20
# What the allocator may keep of the biggest arrays, one more or less of them at a time.
MOST_GROWTH = 2
SEED = 20261130
# Big arrays go back to the system when they are freed: what stays is kept on purpose, or lost.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


class Form(NamedTuple):
    """How long, and on how much; *seconds* are how long a test may take."""

    calls: int
    most_bytes: int
    seconds: float


SHORT = Form(150, MIB // 2, 60.0)
# 50,000 over 2 to 5 ranks in a mesh and in a star.
LONG = Form(6250, 32 * MIB, 7200.0)


class Kept(NamedTuple):
    """How long a group took, and the most that a rank of it had more at the end."""

    seconds: float
    memory: int
    descriptors: int


class Record:
    """The rows of the groups that are done, as Markdown, in the file that SOAK_RECORD names."""

    def __init__(self) -> None:
        self._path = Path(os.environ.get("SOAK_RECORD", os.devnull))

    def has(self, group: str) -> bool:
        return self._path.exists() and f"| {group} |" in self._path.read_text(encoding="utf-8")

    def add(self, group: str, form: Form, kept: Kept) -> None:
        grown = f"{kept.memory / MIB:.1f} | {kept.descriptors}"
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"| {group} | {form.calls:,} | {kept.seconds:.0f} | {grown} |\n")


def soak(wire: str, topology: str, world: int, form: Form) -> Kept:
    """Let *world* ranks make the calls; fail with what they said if a result is wrong."""
    peers = peers_on(fresh_host(), world)
    words = [str(each) for each in (SEED + world, form.calls, form.most_bytes)]
    ranks: List[subprocess.Popen[str]] = []
    try:
        for rank in range(world):
            env = environment(rank, peers, topology, RLX_WIRE=wire)
            del env["RLX_SPIN_US"]
            ranks.append(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.runtime.soak", *words],
                    env={**os.environ, **env, **MALLOC},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        kept = [_kept(process, form) for process in ranks]
        assert max(each.descriptors for each in kept) == 0
        assert max(each.memory for each in kept) < MOST_GROWTH * form.most_bytes + 8 * MIB
        return Kept(*map(max, zip(*kept)))
    finally:
        for process in ranks:
            process.kill()
            process.communicate()


def _kept(process: subprocess.Popen[str], form: Form) -> Kept:
    out, err = process.communicate(timeout=form.seconds)
    assert process.returncode == 0, err
    return Kept(**json.loads(out))


@pytest.mark.parametrize("wire", ["rlx", "native"])
@pytest.mark.parametrize(("topology", "world"), [("mesh", 3), ("star", 4)])
def test_random_collectives_are_right_and_keep_nothing(
    wire: str, topology: str, world: int
) -> None:
    """Any operation, size, dtype and root, in any order: every result is checked whole."""
    soak(wire, topology, world, SHORT)


@pytest.mark.soak
@pytest.mark.parametrize("wire", ["rlx", "native"])
@pytest.mark.parametrize("topology", ["mesh", "star"])
@pytest.mark.parametrize("world", range(2, 6))
def test_fifty_thousand_collectives_are_right_and_keep_nothing(
    wire: str, topology: str, world: int
) -> None:
    """The same for sizes up to 32 MiB, 50,000 calls for each wire."""
    record, group = Record(), f"{wire} | {topology} | {world}"
    if record.has(group):
        pytest.skip(f"{group}: done before, says SOAK_RECORD")
    record.add(group, LONG, soak(wire, topology, world, LONG))
