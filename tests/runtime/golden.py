"""The captured exchanges in golden.json, as values."""

import json
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple


class Vector(NamedTuple):
    """One captured exchange; each rank's *ops* in order, *frames* as (from, to, bytes)."""

    name: str
    topology: str
    world: int
    deterministic: bool
    ranks: List[List[Dict[str, Any]]]
    frames: List[Tuple[int, int, bytes]]

    def stream(self, source: int, to: int) -> bytes:
        """Return all bytes in one direction of one connection, after its HELLO."""
        return b"".join(data for start, end, data in self.frames if (start, end) == (source, to))


def _load() -> Dict[str, Vector]:
    path = Path(__file__).with_name("golden.json")
    vectors = json.loads(path.read_text(encoding="utf-8"))["vectors"]
    return {
        each["name"]: Vector(
            each["name"],
            each["topology"],
            each["world"],
            each.get("deterministic", False),
            each["ranks"],
            [(source, to, bytes.fromhex(hexed)) for source, to, hexed in each["frames"]],
        )
        for each in vectors
    }


VECTORS = _load()
PLAYABLE = {name: vector for name, vector in VECTORS.items() if vector.ranks}
FRAMES = sorted({data for vector in VECTORS.values() for _, _, data in vector.frames})
