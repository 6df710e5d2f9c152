"""`python -m rlxdeploy.runtime`: the built-in node."""

import sys

if __name__ == "__main__":
    try:
        from rlxdeploy.runtime.builtin import run
    except ImportError as error:
        # Without numpy this Python cannot be a rank, however often it is started.
        print(f"rlx: {sys.executable}: {error}; the runtime needs numpy", file=sys.stderr)  # noqa: T201 - the node's own voice
        sys.exit(78)
    sys.exit(run())
