"""The tags that collectives keep to themselves; a program's own are below."""

from enum import IntEnum

RESERVED_TAGS = 0xFFF00000


class Tag(IntEnum):
    """Which collective a message belongs to."""

    BARRIER = RESERVED_TAGS
    ALL_REDUCE = RESERVED_TAGS + 1
    ALL_GATHER = RESERVED_TAGS + 2
    BROADCAST = RESERVED_TAGS + 3
