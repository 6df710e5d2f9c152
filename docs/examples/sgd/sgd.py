"""Data-parallel SGD: every rank has its own data, and all take the same steps.

The model is a line through noisy points.  Each step averages the ranks' gradients, so that every
rank holds the same weights, bit for bit, and no rank ever sees another's data.
"""

import hashlib

import numpy as np

from rlxdeploy.runtime import Node, ReduceKind

STEPS = 200
RATE = 0.1
TRUE_WEIGHTS = np.array([2.0, -3.4, 0.5], dtype=np.float32)


def main() -> None:
    """Train as one rank of the group, and say what came out."""
    with Node.from_env().connect() as group:
        own = np.random.default_rng(group.rank)
        inputs = own.normal(size=(500, 3)).astype(np.float32)
        targets = inputs @ TRUE_WEIGHTS + own.normal(scale=0.01, size=500).astype(np.float32)

        weights = np.zeros(3, dtype=np.float32)
        for _ in range(STEPS):
            gradient = inputs.T @ (inputs @ weights - targets) / len(inputs)
            group.all_reduce(gradient, ReduceKind.MEAN)
            weights -= RATE * gradient

        digest = hashlib.sha256(weights.tobytes()).hexdigest()[:16]
        shown = " ".join(f"{weight:.2f}" for weight in weights)
        print(f"weights {shown} digest {digest}", flush=True)


if __name__ == "__main__":
    main()
