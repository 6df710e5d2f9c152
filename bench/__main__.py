"""`python -m bench`: run a benchmark; without a name, the collectives."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
from pathlib import Path

from bench.collectives import DOCUMENT, measure

NEEDED = ("mpi4py", "numpy", "torch")
HOW = """\
The collectives are measured against gloo (torch) and Open MPI, which this environment lacks:
  apt-get install openmpi-bin libopenmpi-dev
  python3 -m venv /tmp/bench && /tmp/bench/bin/pip install -r bench/requirements.txt
  /tmp/bench/bin/python -m bench
"""


def main() -> int:
    """Run what the command line asks for; 2 where the peers are not installed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="?", default="collectives", choices=["collectives"])
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds: a minute")
    parser.add_argument("--ranks", type=int, action="append", help="2 and 4 unless given")
    parser.add_argument(
        "--write", action="store_true", help=f"put the tables into {DOCUMENT.name}, too"
    )
    options = parser.parse_args()
    if shutil.which("mpirun") is None or not all(map(importlib.util.find_spec, NEEDED)):
        sys.stderr.write(HOW)
        return 2
    text = measure(options.ranks or [2, 4], quick=options.quick)
    print(text)
    if options.write:
        write(text, DOCUMENT)
    return 0


def write(text: str, document: Path) -> None:
    """Replace the section of the document between its two marks."""
    begin, end = "<!-- collectives: begin -->", "<!-- collectives: end -->"
    before, _, rest = document.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    document.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
