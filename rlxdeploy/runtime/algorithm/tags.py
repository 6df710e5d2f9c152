"""The tags that collectives keep to themselves; a program's own are below."""

from enum import IntEnum

RESERVED_TAGS = 0xFFF00000


class Tag(IntEnum):
    """Which collective a message belongs to."""

    BARRIER = RESERVED_TAGS
    ALL_REDUCE = RESERVED_TAGS + 1
    ALL_GATHER = RESERVED_TAGS + 2
    BROADCAST = RESERVED_TAGS + 3
    ALL_TO_ALL = RESERVED_TAGS + 4
    REDUCE = RESERVED_TAGS + 5
    PPERMUTE = RESERVED_TAGS + 6
    ALL_TO_ALL_V = RESERVED_TAGS + 7
