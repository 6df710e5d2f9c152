"""Our collectives against gloo's and Open MPI's over TCP, alternating in one set of processes.

Each run is one `mpirun`: every rank of it holds all the peers and takes them in turn, block after
block, so that whatever else the machine does falls on all of them.  Figures are medians over the
rounds, ratios are ratios of medians.  The latency against Open MPI is measured in a run of its own
without gloo, whose threads slow down everybody.  Since the peers cannot choose their congestion
control, everything is measured twice: as the machine is, and with all of them on reno in a private
network namespace.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.table import Case, Timing, section

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/benchmarks.md"
# A run that stands still is a bug worth seeing, not waiting for.
_LIMIT_S = 900
_KI, _MI = 1 << 10, 1 << 20

_SIZES = (8, 64 * _KI, _MI, 16 * _MI, 128 * _MI)
FULL = (
    *(Case("all_reduce", "f32", size) for size in _SIZES),
    *(
        Case("all_reduce", dtype, size)
        for dtype in ("f16", "bf16")
        for size in (64 * _KI, 16 * _MI)
    ),
    *(
        Case(op, "f32", size)
        for op in ("broadcast", "all_gather", "reduce_scatter")
        for size in (8, 64 * _KI, _MI, 16 * _MI)
    ),
    Case("barrier", "", 0),
)
QUICK = (
    *(Case("all_reduce", "f32", size) for size in (8, 64 * _KI, _MI, 16 * _MI)),
    Case("all_reduce", "f16", 16 * _MI),
    *(Case(op, "f32", _MI) for op in ("broadcast", "all_gather", "reduce_scatter")),
    Case("barrier", "", 0),
)
LATENCY = tuple(Case("all_reduce", "f32", size) for size in (8, 4 * _KI, 64 * _KI, _MI))


class Run(NamedTuple):
    """One `mpirun`: which peers, how many ranks, and whether all are on reno."""

    title: str
    ranks: int
    peers: tuple[str, ...]
    cases: Sequence[Case]
    reno: bool = False


def measure(ranks: Sequence[int], *, quick: bool) -> str:
    """Measure everything and return it as a section of the document."""
    cases, rounds = (QUICK, 3) if quick else (FULL, 7)
    runs = [run for count in ranks for run in _runs(count, cases)]
    done = [(run.title, *_carry_out(run, rounds)) for run in runs]
    return section(_machine(), "python -m bench --write" + " --quick" * quick, done)


def _runs(ranks: int, cases: Sequence[Case]) -> list[Run]:
    every = ("ours", "gloo", "mpi")
    runs = [
        Run(f"{ranks} ranks, the machine's own congestion control", ranks, every, cases),
        Run(f"{ranks} ranks, latency without gloo in the process", ranks, ("ours", "mpi"), LATENCY),
    ]
    if os.geteuid() == 0:
        runs.append(Run(f"{ranks} ranks, all on reno", ranks, every, cases, reno=True))
    return runs


def _carry_out(run: Run, rounds: int) -> tuple[list[Timing], dict[str, Any]]:
    """Start the ranks; return what each case took, and the raw limit of the sockets."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        task = Path(folder) / "task.json"
        task.write_text(json.dumps([list(run.peers), [list(case) for case in run.cases], rounds]))
        command = _command(run, task, answer)
        print(f"{run.title} …", file=sys.stderr, flush=True)
        subprocess.run(command, cwd=ROOT, env=_environment(), check=True, timeout=_LIMIT_S)
        read = json.loads(answer.read_text())
    timings = [Timing(Case(*case), seconds) for case, seconds in read["timings"]]
    return timings, read["limit"]


def _command(run: Run, task: Path, answer: Path) -> list[str]:
    command = ["mpirun", "-n", str(run.ranks), "--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"]
    for key, value in (
        ("btl", "tcp,self"),
        ("pml", "ob1"),
        ("btl_tcp_if_include", "lo"),
        ("oob_tcp_if_include", "lo"),
    ):
        command += ["--mca", key, value]
    command += [sys.executable, "-W", "ignore", "-m", "bench.rank", str(task), str(answer)]
    if not run.reno:
        return command
    prepare = "ip link set lo up && sysctl -qw net.ipv4.tcp_congestion_control=reno"
    return ["unshare", "-n", "sh", "-c", f'{prepare} && exec "$@"', "sh", *command]


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "PYTHONPATH": str(ROOT),
    }


def _machine() -> str:
    control = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text(encoding="ascii").strip()
    system = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    python = f"Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {system}, {control} by default, {python}"
