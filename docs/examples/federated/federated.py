"""Federated averaging: ranks train on their own, and meet now and then at rank 0.

Rank 0 waits for the others no longer than the deadline.  The last rank is late in every second
round: it is left out of that round's average, gets it all the same, and goes on from there.
"""

import time

import numpy as np

from rlxdeploy.runtime import Node

ROUNDS = 4
DEADLINE_S = 3.0
LATE_S = 4.5  # as far beyond this round's deadline as within the next one's
LOCAL_STEPS = 50
RATE = 0.1
TRUE_WEIGHTS = np.array([1.5, -0.5], dtype=np.float32)


def main() -> None:
    """Take part in every round as one rank of the group."""
    with Node.from_env().connect() as group:
        own = np.random.default_rng(group.rank)
        inputs = own.normal(size=(200, 2)).astype(np.float32)
        targets = inputs @ TRUE_WEIGHTS

        weights = np.zeros(2, dtype=np.float32)
        for number in range(ROUNDS):
            for _ in range(LOCAL_STEPS):
                weights -= RATE * inputs.T @ (inputs @ weights - targets) / len(inputs)
            if group.rank == group.world - 1 and number % 2:
                time.sleep(LATE_S)
            turnout = group.federated_average(weights, DEADLINE_S)
            if group.is_leader:
                part = f"{turnout.present} took part, late {turnout.left_out}"
                print(f"round {number}: {part}", flush=True)

        shown = " ".join(f"{weight:.2f}" for weight in weights)
        print(f"weights {shown}", flush=True)


if __name__ == "__main__":
    main()
