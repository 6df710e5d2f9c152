"""Collectives as generators of moves: who sends which bytes to whom, in what order; no I/O here.

Each takes a `Member` and flat, contiguous, little-endian arrays, works in place, and yields moves
that `link` carries out.  The patterns and tags are rlx-driver's, so that ranks of both can share
a group; in a star of three ranks or more, where upstream has no link to use, what a rank cannot
send directly goes through rank 0.
"""
