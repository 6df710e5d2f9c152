"""`python -m bench NAME`: run a benchmark; without a name, the collectives."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.collectives import DOCUMENT, measure
from tests.fleet.harness.local import FleetError

NAMES = ("collectives", "compile", "deploy", "scan")
NEEDED = ("mpi4py", "numpy", "torch")
HOW = """\
The collectives are measured against gloo (torch) and Open MPI, which this environment lacks:
  apt-get install openmpi-bin libopenmpi-dev
  python3 -m venv /tmp/bench && /tmp/bench/bin/pip install -r bench/requirements.txt
  /tmp/bench/bin/python -m bench
"""


def main() -> int:
    """Run what the command line asks for; 2 where the peers are not installed, 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="?", default="collectives", choices=NAMES)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds: minutes")
    parser.add_argument("--ranks", type=int, action="append", help="2 and 4 unless given")
    parser.add_argument(
        "--write", action="store_true", help=f"put the tables into {DOCUMENT.name}, too"
    )
    options = parser.parse_args()
    if lacking := _lacking(options.name):
        sys.stderr.write(f"{lacking}\n")
        return 2
    text, failed = _measured(options)
    if text:
        print(text)
    if failed:
        sys.stderr.write("".join(f"not measured: {each}\n" for each in failed))
        return 1
    if options.write:
        write(options.name, text, DOCUMENT)
    return 0


def _lacking(name: str) -> str:
    """Return what the benchmark needs and this machine has not."""
    if name in ("deploy", "scan"):
        return str(_module(name).unmet())
    peers = shutil.which("mpirun") and all(map(importlib.util.find_spec, NEEDED))
    return HOW if name == "collectives" and not peers else ""


def _module(name: str) -> Any:  # noqa: ANN401 - one of our modules
    # Imported when asked for: each needs packages that the others do not.
    return importlib.import_module(f"bench.{name}")


def _measured(options: argparse.Namespace) -> tuple[str, list[str]]:
    """Return the text, and what could not be measured."""
    if options.name != "collectives":
        return carried_out(options.name, _module(options.name).run)
    return measure(options.ranks or [2, 4], quick=options.quick)


def carried_out(name: str, run: Callable[[], str]) -> tuple[str, list[str]]:
    """Return what *run* measured, or why it is not worth anything: what ran did not do its task."""
    try:
        return run(), []
    except (RuntimeError, FleetError) as error:
        return "", [f"{name}: {error}"]


def write(name: str, text: str, document: Path) -> None:
    """Replace the section of the document between the two marks of the benchmark."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = document.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    document.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
