"""The exchanges in golden.json, which were captured, and derived.json, worked out, as values."""

import json
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple


class Vector(NamedTuple):
    """One captured exchange; each rank's *ops* in order, *frames* as (from, to, bytes).

    *in_turn* says that a frame was sent only after all frames before it had come.
    """

    name: str
    topology: str
    world: int
    deterministic: bool
    in_turn: bool
    ranks: List[List[Dict[str, Any]]]
    frames: List[Tuple[int, int, bytes]]

    def stream(self, source: int, to: int) -> bytes:
        """Return all bytes in one direction of one connection, after its HELLO."""
        return b"".join(data for start, end, data in self.frames if (start, end) == (source, to))


def _vector(each: Dict[str, Any]) -> Vector:
    return Vector(
        each["name"],
        each["topology"],
        each["world"],
        each.get("deterministic", False),
        each.get("in_turn", False),
        each["ranks"],
        [(source, to, bytes.fromhex(hexed)) for source, to, hexed in each["frames"]],
    )


def _read(name: str) -> Dict[str, Any]:
    read: Dict[str, Any] = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    return read


def _vectors(read: Dict[str, Any]) -> Dict[str, Vector]:
    return {each["name"]: _vector(each) for each in read["vectors"]}


_CAPTURED = _read("golden.json")
VECTORS = _vectors(_CAPTURED)
DERIVED = _vectors(_read("derived.json"))
PLAYABLE = {name: vector for name, vector in VECTORS.items() if vector.ranks}
FRAMES = sorted({data for vector in VECTORS.values() for _, _, data in vector.frames})
DATAGRAMS: Dict[str, str] = _CAPTURED["udp"]
# What a rank of a topology says first, to whomever it dials.
GREETINGS = {
    (vector.topology, source): said
    for vector in (VECTORS["hello"], VECTORS["hello_star"])
    for source, _, said in vector.frames
}


def greeting(topology: str, rank: int) -> bytes:
    """Return what *rank* says first: as captured, and as all that was captured for a higher one."""
    return GREETINGS.get((topology, rank), b"\x01" + rank.to_bytes(4, "little") + bytes(8))
