"""Our collectives against gloo's and Open MPI's over TCP, alternating in one set of processes.

Each run is one `mpirun`: every rank of it holds all the peers and takes them in turn, block after
block, so that whatever else the machine does falls on all of them.  Figures are medians over the
rounds, ratios are ratios of medians.  The latency against Open MPI is measured in a run of its own
without gloo, whose threads slow down everybody.  Since the peers cannot choose their congestion
control, everything is measured twice: as the machine is, and with all of them on reno in a private
network namespace.  Shorter runs show what else there is: a star, 8 ranks, the `rlx` wire, a busy
thread beside, two hosts.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.hosts import two_hosts
from bench.table import Case, Done, Timing, section
from tests.fleet.harness.local import FleetError
from tests.fleet.harness.needs import unmet_need

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/benchmarks.md"
# A run that stands still is a bug worth seeing, not waiting for.
_LIMIT_S = 600
_KI, _MI = 1 << 10, 1 << 20

_SIZES = (8, 64 * _KI, _MI, 16 * _MI, 128 * _MI)
FULL = (
    *(Case("all_reduce", dtype, size) for dtype in ("f32", "f16", "bf16") for size in _SIZES),
    *(
        Case(op, "f32", size)
        for op in ("broadcast", "all_gather", "reduce_scatter")
        for size in _SIZES
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
EVERY = ("ours", "gloo", "mpi")


class Run(NamedTuple):
    """One `mpirun`: which contenders, how many ranks, and whether all are on reno."""

    title: str
    ranks: int
    peers: tuple[str, ...]
    cases: Sequence[Case]
    reno: bool = False
    about: str = ""


class Unfinished(Exception):
    """A run failed twice, or stood still."""


def measure(ranks: Sequence[int], *, quick: bool) -> tuple[str, list[str]]:
    """Measure everything; return it as a section of the document, and what failed twice."""
    cases, rounds = (QUICK, 3) if quick else (FULL, 9)
    runs = [run for count in ranks for run in _runs(count, cases)] + _more(ranks)
    deeds = [partial(_carry_out, run, rounds) for run in runs]
    if not unmet_need():
        deeds.append(partial(_two_hosts, rounds))
    done, failed = [], []
    for deed in deeds:
        try:
            done.append(_twice(deed))
        except Unfinished as error:
            failed.append(str(error))
    return section(_machine(), "python -m bench --write" + " --quick" * quick, done), failed


def _runs(ranks: int, cases: Sequence[Case]) -> list[Run]:
    runs = [
        Run(f"{ranks} ranks, the machine's own congestion control", ranks, EVERY, cases),
        Run(f"{ranks} ranks, latency without gloo in the process", ranks, ("ours", "mpi"), LATENCY),
    ]
    if os.geteuid() == 0:
        runs.append(Run(f"{ranks} ranks, all on reno", ranks, EVERY, cases, reno=True))
    return runs


def _more(ranks: Sequence[int]) -> list[Run]:
    """Return what is shown besides, for the numbers of ranks asked for."""
    star = Run("4 ranks in a star", 4, ("star", "ours", "gloo", "mpi"), QUICK)
    runs = [star._replace(about="Every link leads to rank 0; `ours` is the mesh.")]
    runs += [Run("8 ranks", 8, EVERY, QUICK)]
    for count in ranks:
        rlx = Run(f"The `rlx` wire, {count} ranks", count, ("rlx", "ours"), QUICK)
        runs.append(rlx._replace(about="Byte for byte as upstream has it; `ours` is `native`."))
    beside = ("yielding", "beside", "ours", "gloo beside", "gloo")
    thread = Run("2 ranks, each beside a busy Python thread", 2, beside, QUICK)
    return [*runs, thread._replace(about=_THREAD)]


_THREAD = (
    "`beside`: a thread of each rank's process computes in Python all the time; `yielding`: the "
    "same after `sys.setswitchinterval(0.0005)`."
)


def _twice(deed: Callable[[], Done]) -> Done:
    """Carry out a run, a second time where the first does not end well."""
    try:
        return deed()
    except Unfinished as failed:
        print(f"{failed}; once more", file=sys.stderr, flush=True)
        return deed()


def _two_hosts(rounds: int) -> Done:
    print("two hosts …", file=sys.stderr, flush=True)
    try:
        return two_hosts(QUICK, rounds)
    except FleetError as failed:
        raise Unfinished(f"two hosts: {failed}") from failed


def _carry_out(run: Run, rounds: int) -> Done:
    """Start the ranks; return what each case took, and the raw limit of the sockets."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        task = Path(folder) / "task.json"
        task.write_text(json.dumps([list(run.peers), [list(case) for case in run.cases], rounds]))
        key = Path(folder) / "key"
        key.touch(0o600)
        key.write_text(secrets.token_hex(32))
        print(f"{run.title} …", file=sys.stderr, flush=True)
        _await(
            run.title, subprocess.Popen(_command(run, task, answer), cwd=ROOT, env=_environment())
        )
        read = json.loads(answer.read_text())
    timings = [Timing(Case(*case), seconds) for case, seconds in read["timings"]]
    return Done(run.title, run.about, timings, read["limit"])


def _await(title: str, ranks: subprocess.Popen[bytes]) -> None:
    """Wait for mpirun, which ends its ranks when it is told to end, and only then."""
    try:
        status = ranks.wait(_LIMIT_S)
    except subprocess.TimeoutExpired:
        status = -1
    finally:
        ranks.terminate()
        ranks.wait()
    if status:
        why = f"exit {status}" if status > 0 else f"not finished after {_LIMIT_S} s"
        raise Unfinished(f"{title}: {why}")


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
