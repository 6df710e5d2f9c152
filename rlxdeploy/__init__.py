"""rlxdeploy: from one inventory to a running group of ranks; `rlxdeploy.runtime` is the group."""

__version__ = "0.1.0"
