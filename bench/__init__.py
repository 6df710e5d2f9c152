"""Benchmarks, each against its peers in the same run; `python -m bench` says how."""
