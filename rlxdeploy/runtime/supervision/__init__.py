"""The parts of the supervisor: standard library alone, Python 3.9, no numpy.

It means by its words what systemd means by them, so that a job behaves the same under both
launches: see `systemd.service(5)` for restart, ready, watchdog and start limits, and
`systemd.kill(5)` for the mixed kill mode.
"""
