"""The memory that a rank offers to the others: they put into it and get from it unasked."""

from __future__ import annotations

from typing import Optional

import numpy as np


class Heap:
    """*size* zeroed bytes, of which the kernel gives a page when it is first written."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._memory: memoryview = np.zeros(size, np.uint8).data

    def window(self, offset: int, length: int) -> Optional[memoryview]:
        """Return those bytes, to read and to write; None where they are not all inside."""
        if offset + length > self.size:
            return None
        return self._memory[offset : offset + length]
