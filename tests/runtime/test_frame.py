"""The wire format: captured frames both ways, however they are cut, and whatever else comes."""

from typing import Iterator, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlxdeploy.runtime.errors import WireError
from rlxdeploy.runtime.wire.decoder import FrameDecoder, new_buffer
from rlxdeploy.runtime.wire.frame import (
    Frame,
    Header,
    Kind,
    encode,
    get_request,
    hello,
    parse_hello,
)
from tests.runtime.golden import FRAMES, VECTORS, Vector

LIMIT = 1 << 16


def feed(decoder: FrameDecoder, wire: bytes, piece: int) -> Iterator[Frame]:
    """Give *wire* to the decoder as a socket would, *piece* bytes at most at a time."""
    while wire:
        room = decoder.buffer()
        count = min(piece, len(room), len(wire))
        room[:count] = wire[:count]
        wire = wire[count:]
        yield from decoder.advance(count)


def plain(frames: Iterator[Frame]) -> List[Frame]:
    return [frame._replace(payload=bytes(frame.payload)) for frame in frames]


WRITTEN = {
    "hello": (hello(1), "01 01000000 00000000 00000000"),
    "send": (
        encode(Frame(Kind.SEND, 0, 7, bytes.fromhex("0000803f00000040"))),
        "02 00000000 07000000 08000000 0000803f 00000040",
    ),
    "barrier": (
        encode(Frame(Kind.SEND, 1, 0xFFF00000, b"\x01")),
        "02 01000000 0000f0ff 01000000 01",
    ),
    "put": (
        encode(Frame(Kind.PUT, 0, 128, b"\x05\x06\x07\x08")),
        "03 00000000 80000000 04000000 05060708",
    ),
    "get": (get_request(1, 128, 4), "04 01000000 00000000 08000000 80000000 04000000"),
    "got": (
        encode(Frame(Kind.GETRESP, 1, 64, b"\0\0")),
        "05 01000000 40000000 02000000 0000",
    ),
}


@pytest.mark.parametrize(("ours", "hexed"), WRITTEN.values(), ids=WRITTEN)
def test_what_we_write_is_what_the_format_says(ours: bytes, hexed: str) -> None:
    """Each of the five kinds is written as its bytes stand in the description."""
    assert ours == bytes.fromhex(hexed)


@pytest.mark.parametrize("piece", [1, 5, 4096])
def test_a_captured_frame_reads_back_however_it_is_cut(piece: int) -> None:
    """Whole, byte by byte, followed by itself or by half a frame, it means the same."""
    for wire in FRAMES:
        frames = plain(feed(FrameDecoder(None, LIMIT), wire, piece))

        assert len(frames) == 1, wire.hex()
        assert encode(frames[0]) == wire
        assert plain(feed(FrameDecoder(None, LIMIT), wire + wire, piece)) == frames * 2, wire.hex()

        decoder = FrameDecoder(None, LIMIT)
        assert plain(feed(decoder, wire + wire[:7], piece)) == frames, wire.hex()
        assert decoder.inside_frame, wire.hex()


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS)
def test_a_captured_connection_names_its_sender_throughout(vector: Vector) -> None:
    """Every frame of a direction carries the sender's rank, so the source check accepts it."""
    for source, to in {(source, to) for source, to, _ in vector.frames}:
        wire = vector.stream(source, to)
        frames = plain(feed(FrameDecoder(source, LIMIT), wire, 3))

        assert b"".join(map(encode, frames)) == wire


def test_a_payload_is_received_where_it_belongs() -> None:
    """Big payloads go into the memory `place` names, and nowhere else first."""
    home = bytearray(50_000)
    asked: List[Header] = []

    def place(header: Header) -> memoryview:
        asked.append(header)
        return memoryview(home)

    decoder = FrameDecoder(3, LIMIT, place)
    wire = encode(Frame(Kind.SEND, 3, 9, bytes(range(250)) * 200))
    frames = list(feed(decoder, wire, 1 << 20))

    assert asked == [Header(Kind.SEND, 3, 9, 50_000)]
    assert home == bytes(range(250)) * 200
    assert len(frames) == 1


def test_a_payload_in_flight_can_be_moved() -> None:
    """After `detach` the first place is not written to any more, and the frame is whole."""
    home = bytearray(40_000)
    decoder = FrameDecoder(0, LIMIT, lambda _: memoryview(home))
    wire = encode(Frame(Kind.SEND, 0, 1, b"x" * 40_000))
    assert not list(feed(decoder, wire[:10_000], 4096))

    decoder.detach()
    home[:] = bytes(40_000)

    assert plain(feed(decoder, wire[10_000:], 4096)) == [Frame(Kind.SEND, 0, 1, b"x" * 40_000)]
    assert home == bytes(40_000)


REFUSED = {
    "kind-0": (bytes(13), "kind 0"),
    "kind-6": (b"\6" + bytes(12), "kind 6"),
    "http": (b"GET / HTTP/1.1\r\n\r\n", "kind 71"),
    "source": (encode(Frame(Kind.SEND, 2, 0, b"")), "rank 1 sent a frame in the name of rank 2"),
    "length": (b"\2\1\0\0\0\0\0\0\0\1\0\1\0", "65537 bytes; at most 65536"),
}


@pytest.mark.parametrize(("wire", "says"), REFUSED.values(), ids=REFUSED)
def test_what_no_rank_sends_is_refused_before_memory_is_given(wire: bytes, says: str) -> None:
    """Kind, source and length are checked as soon as the header is there."""

    def no_memory(header: Header) -> memoryview:
        raise AssertionError(header)

    with pytest.raises(WireError, match=says):
        list(feed(FrameDecoder(1, LIMIT, no_memory), wire, 1))


@pytest.mark.parametrize(
    "said",
    [b"", hello(1)[:12], encode(Frame(Kind.SEND, 1, 0, b"")), b"\1" + bytes(8) + b"\1\0\0\0"],
)
def test_only_a_hello_is_a_hello(said: bytes) -> None:
    """Anything but 13 bytes of HELLO without payload is a WireError."""
    with pytest.raises(WireError):
        parse_hello(said)


def test_b_of_a_hello_is_ignored() -> None:
    """Upstream ignores it, so a later version may use it."""
    assert parse_hello(bytes.fromhex("01 05000000 63000000 00000000")) == 5


@st.composite
def _mutated(draw: st.DrawFn) -> bytes:
    wire = bytearray(b"".join(draw(st.lists(st.sampled_from(FRAMES), min_size=1, max_size=6))))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(wire) - 1))
        wire[at] = draw(st.integers(0, 255))
    cut = draw(st.integers(0, len(wire)))
    return bytes(wire[:cut] + draw(st.binary(max_size=30)) + wire[cut:])


@given(wire=_mutated(), piece=st.integers(1, 40))
def test_garbage_gives_frames_or_a_wire_error_and_bounded_memory(wire: bytes, piece: int) -> None:
    """No bytes make the decoder raise anything else or hold more than one allowed payload."""
    given_out: List[int] = []

    def place(header: Header) -> memoryview:
        given_out.append(header.length)
        return new_buffer(header)

    decoder = FrameDecoder(None, 4096, place)
    try:
        frames = plain(feed(decoder, wire, piece))
    except WireError:
        return
    assert len(given_out) - len(frames) in {0, 1}
    assert max(given_out, default=0) <= 4096
    assert wire.startswith(b"".join(map(encode, frames)))


@given(
    frames=st.lists(
        st.builds(
            Frame,
            st.sampled_from(Kind),
            st.integers(0, 2**32 - 1),
            st.integers(0, 2**32 - 1),
            st.binary(max_size=5000),
        ),
        max_size=5,
    ),
    piece=st.integers(1, 6000),
)
def test_frames_survive_the_wire(frames: List[Frame], piece: int) -> None:
    """Any frames, encoded and cut anywhere, come back."""
    wire = b"".join(map(encode, frames))

    assert plain(feed(FrameDecoder(None, LIMIT), wire, piece)) == frames
