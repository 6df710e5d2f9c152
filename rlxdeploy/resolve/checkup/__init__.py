"""The check-up: rules that read one survey and yield what a person should mend.

A rule looks at one host (`hosts.py`, `means.py`) or at how hosts stand to one another
(`wiring.py`).  What a plan would refuse anyway is asked of the plan's own checks, so that the two
never disagree.
"""
