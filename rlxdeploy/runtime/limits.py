"""Bounds and timings of the transport, each with its reason; tests build a tight one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Limits:
    """Bounds and timings; nothing here is part of the wire format."""

    # A frame's length is a u32 that a broken peer may fill with anything.  1 GiB holds one
    # rank's chunk of a 4 GiB gradient over four ranks; more is refused before allocation.
    max_payload: int = 1 << 30

    # What one peer may send before anybody asks for it.  Beyond this the peer does not follow
    # the program this rank follows, and memory would grow without end.
    max_unread: int = 1 << 30

    # A rank says HELLO with its first packet; a scanner or half-open client never does.
    hello_s: float = 5.0

    # A rank that rank 0 refuses for so long, again and again, will not be let in.  An older rank 0
    # that was told to end is gone by then.
    refused_s: float = 3.0

    # A refusal older than this says nothing of now: whoever is still there has come again, even
    # where a dial hung meanwhile.
    stale_s: float = 6.0

    # Connections that have not said HELLO yet.  A scan opens many; the oldest goes first.
    max_guests: int = 64

    # Reasons to turn somebody away that are kept with their counts, and lines said of them.
    # Strangers choose what they say; a person reads a dozen lines.
    max_reasons: int = 16

    # How long nobody is let in where descriptors have run out: what lacks will lack for a while,
    # and nothing else may have to wait for it.
    accept_rest_s: float = 0.1

    # One dial; a blackholed address must not hold back the next try until the join deadline.
    dial_s: float = 3.0

    # Between two tries of one address: quick at first, for ranks that start together.
    redial_min_s: float = 0.02
    redial_max_s: float = 0.25

    # A rank of the `rlx` wire says no goodbye: after the last collective it simply closes.  A call
    # that does not need that rank goes on, and fails once nothing has moved for this long.
    lost_grace_s: float = 0.25

    # Every rank with a link to the lost one notices for itself.  Leaving only a moment later lets
    # all of them name that rank, and not the first one that gave up because of it.  The same holds
    # for a call that is late on all of them.
    lost_pause_s: float = 0.2

    # How long a rank that leaves tries to tell the others why: whoever reads at all, reads sooner.
    farewell_s: float = 0.25

    # How long close() waits for the kernel to hand over what was sent.
    linger_s: float = 1.0

    # Kernel buffers are left to autotuning; tests make them tiny.
    socket_buffer: Optional[int] = None
