"""A byte stream becomes frames; the caller owns the socket, the decoder owns the buffer.

`n = sock.recv_into(decoder.buffer())`, then `decoder.advance(n)`.  Headers and small frames pass
through a stash, so that one receive takes a whole small message; the rest of a bigger payload is
received where `place` says it belongs, uncopied.
"""

from __future__ import annotations

from typing import Callable, List, Optional

from rlxdeploy.runtime.errors import WireError
from rlxdeploy.runtime.wire.frame import HEADER_BYTES, Frame, Header, parse_header

# Big enough for a small message in one receive, too small for its copy to matter in a big one.
_STASH_BYTES = 2048

Place = Callable[[Header], memoryview]


def new_buffer(header: Header) -> memoryview:
    """Give a payload memory of its own."""
    return memoryview(bytearray(header.length))


class FrameDecoder:
    """Read the frames of one peer, *source*; None reads those of any.

    *place* returns writable memory of exactly the payload's length, once the header has passed:
    a known kind, the right source, at most *max_payload* bytes.  Everything else is a WireError,
    after which the stream cannot be read on.
    """

    def __init__(self, source: Optional[int], max_payload: int, place: Place = new_buffer) -> None:
        self._source, self._max_payload, self._place = source, max_payload, place
        self._stash = memoryview(bytearray(_STASH_BYTES))
        self._held = 0
        self._header: Optional[Header] = None
        self._payload = self._rest = memoryview(b"")

    @property
    def inside_frame(self) -> bool:
        """Whether the stream has stopped in the middle of a frame."""
        return bool(self._held) or self._header is not None

    def buffer(self) -> memoryview:
        """Return where the next bytes of the stream go; never empty."""
        return self._stash[self._held :] if self._header is None else self._rest

    def advance(self, count: int) -> List[Frame]:
        """Take note of *count* bytes written into `buffer()`; return the frames that are whole."""
        if self._header is None:
            self._held += count
            return self._parse_stash()
        self._rest = self._rest[count:]
        return [] if len(self._rest) else [self._finish(self._header)]

    def detach(self) -> None:
        """Move a payload in flight into memory of its own: its place is wanted back."""
        if self._header is None:
            return
        done = len(self._payload) - len(self._rest)
        own = memoryview(bytearray(len(self._payload)))
        own[:done] = self._payload[:done]
        self._payload, self._rest = own, own[done:]

    def _parse_stash(self) -> List[Frame]:
        frames: List[Frame] = []
        at = 0
        while self._held - at >= HEADER_BYTES:
            header = self._checked(at)
            at = self._start(header, at + HEADER_BYTES)
            if len(self._rest):
                break
            frames.append(self._finish(header))
        if at:
            left = self._held - at
            self._stash[:left] = self._stash[at : self._held]
            self._held = left
        return frames

    def _checked(self, at: int) -> Header:
        header = parse_header(self._stash, at)
        if self._source is not None and header.source != self._source:
            raise WireError(f"rank {self._source} sent a frame in the name of rank {header.source}")
        if header.length > self._max_payload:
            raise WireError(
                f"rank {header.source} announced {header.length} bytes; at most "
                f"{self._max_payload} are accepted"
            )
        return header

    def _start(self, header: Header, at: int) -> int:
        """Place a payload and fill it from the stash; return where the stash goes on."""
        self._header, self._payload = header, self._place(header)
        taken = min(header.length, self._held - at)
        self._payload[:taken] = self._stash[at : at + taken]
        self._rest = self._payload[taken:]
        return at + taken

    def _finish(self, header: Header) -> Frame:
        frame = Frame(header.kind, header.source, header.b, self._payload)
        self._header, self._payload = None, memoryview(b"")
        return frame
