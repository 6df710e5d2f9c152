"""A user's own program: join the group, add up what every rank brings, say what came out."""

import argparse
import sys

import numpy as np

from rlxdeploy.runtime import Node, ReduceKind


def main() -> None:
    """Greet from one rank of the group."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--greeting", default="hello")
    greeting = parser.parse_args().greeting
    with Node.from_env().connect() as group:
        total = np.full(1, group.rank + 1, dtype=np.float32)
        group.all_reduce(total, ReduceKind.SUM)
        sys.stdout.write(f"{greeting} from rank {group.rank}: {total[0]:g}\n")


if __name__ == "__main__":
    main()
