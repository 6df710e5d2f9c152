"""`python -m rlxdeploy.runtime`: the built-in node."""

import sys

from rlxdeploy.runtime.builtin import run

if __name__ == "__main__":
    sys.exit(run())
