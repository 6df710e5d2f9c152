"""Valid bytes with mistakes in them: nothing but a WireError, and no memory for the asking.

The same properties are put to readers with a check left out, and must find them.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
import tracemalloc
from typing import Any, Callable, Dict, List, Type

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rlxdeploy.runtime.errors import JoinTimeout, WireError
from rlxdeploy.runtime.limits import Limits
from rlxdeploy.runtime.link.door import Door
from rlxdeploy.runtime.link.form import Formation, Onlooker, Place
from rlxdeploy.runtime.link.heap import Heap
from rlxdeploy.runtime.link.listener import listen
from rlxdeploy.runtime.link.peer import Home, Peer
from rlxdeploy.runtime.roster import Roster
from rlxdeploy.runtime.settings import Settings
from rlxdeploy.runtime.wire.decoder import FrameDecoder, new_buffer
from rlxdeploy.runtime.wire.frame import HEADER_BYTES, Header, hello, parse_header
from tests.runtime.cluster import PATIENCE_S, environment, fresh_host, peers_on
from tests.runtime.golden import FRAMES
from tests.runtime.mutations import SEARCH, mutated

SOURCE = 1
LIMIT = 4096
# A stash, a payload, and the interpreter's own.
MOST_MEMORY = 16 * LIMIT
THEIRS = [frame for frame in FRAMES if frame[1:5] == bytes([SOURCE, 0, 0, 0])]


def read_frames(decoder_type: Type[FrameDecoder], wire: bytes, piece: int) -> None:
    """Read what rank SOURCE may have sent; fail where a frame passes that none of its is."""

    def place(header: Header) -> memoryview:
        assert header.length <= LIMIT, "memory is given for the asking"
        assert header.source == SOURCE, "a frame in another's name"
        return new_buffer(header)

    decoder = decoder_type(SOURCE, LIMIT, place)
    try:
        while wire:
            room = decoder.buffer()
            count = min(piece, len(room), len(wire))
            room[:count] = wire[:count]
            wire = wire[count:]
            decoder.advance(count)
    except WireError:
        return


PIECES = st.sampled_from([1, 3, HEADER_BYTES, 4096])


@given(wire=mutated(THEIRS), piece=PIECES)
def test_frames_with_mistakes_are_frames_or_a_wire_error(wire: bytes, piece: int) -> None:
    """No mutation makes the decoder raise anything else, or pass what its rank may not send."""
    read_frames(FrameDecoder, wire, piece)


@given(wire=mutated(THEIRS))
def test_mistakes_cost_no_memory(wire: bytes) -> None:
    """Whatever a rank sends, its link holds no more than one allowed payload and the unread."""
    ours, theirs = socket.socketpair()
    limits = Limits(max_payload=LIMIT, max_unread=LIMIT)
    lost: List[Peer] = []
    with ours, theirs:
        ours.settimeout(0)
        peer = Peer(SOURCE, "there", ours, Home(0, Heap(LIMIT), limits, lost))
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        try:
            theirs.sendall(wire)
            theirs.shutdown(socket.SHUT_WR)
            while peer.receive():
                pass
        except WireError:
            pass
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    assert lost == [peer]
    assert peak - before < MOST_MEMORY


class LengthUnchecked(FrameDecoder):
    """A decoder that believes any length."""

    def _checked(self, at: int) -> Header:
        header = parse_header(self._stash, at)
        if header.source != self._source:
            raise WireError("another's name")
        return header


class RankUnchecked(FrameDecoder):
    """A decoder that believes any source."""

    def _checked(self, at: int) -> Header:
        header = parse_header(self._stash, at)
        if header.length > self._max_payload:
            raise WireError("too long")
        return header


PLANTED: Dict[str, Any] = {
    "length": (LengthUnchecked, "memory is given for the asking"),
    "rank": (RankUnchecked, "a frame in another's name"),
}


@pytest.mark.parametrize(("broken", "says"), PLANTED.values(), ids=PLANTED)
def test_a_check_that_is_left_out_is_found(broken: Type[FrameDecoder], says: str) -> None:
    """The property above fails for a decoder without the check, so it does test it."""

    @SEARCH
    @given(wire=mutated(THEIRS), piece=PIECES)
    def search(wire: bytes, piece: int) -> None:
        read_frames(broken, wire, piece)

    with pytest.raises(AssertionError, match=says):
        search()


class AnyRank(Formation):
    """A bring-up that awaits whoever comes."""

    def run(self, deadline: float, seconds: float) -> Any:  # noqa: ANN401 - as the base
        self._awaited = range(1 << 32)  # type: ignore[assignment] # the planted bug
        return super().run(deadline, seconds)

    def _new_roster(self) -> Roster:
        return Roster([1, 2])


class Bringup:
    """Rank 0 of a star of 3 while it joins; whoever gets in is in `links`."""

    def __init__(self, kind: Type[Formation], patience: float = PATIENCE_S) -> None:
        peers = peers_on(fresh_host(), 3)
        chosen = Settings.from_env(environment(0, peers, "star"))
        self.address = chosen.peers[0]
        self.door = Door(listen(self.address, Limits(), open_net=False), Limits(), 10)
        place = Place(0, 3, True, chosen.peers, 10)  # noqa: FBT003 - a tuple's field
        self._formation = kind(place, self.door, Limits(), Onlooker())
        self._patience = patience
        self._thread = threading.Thread(target=self._run)
        self.links: Dict[int, Any] = {}
        self._thread.start()

    def _run(self) -> None:
        deadline = time.monotonic() + self._patience
        with contextlib.suppress(JoinTimeout):
            self.links = self._formation.run(deadline, self._patience)

    def shows_out(self, said: bytes) -> bool:
        """Whether somebody who says this is shown out."""
        with socket.create_connection(self.address) as sock:
            try:
                sock.sendall(said)
                if len(said) < HEADER_BYTES:
                    sock.shutdown(socket.SHUT_WR)
                heard = select.select([sock], [], [], self._patience / 3)[0]
                return bool(heard) and sock.recv(1) == b""
            except OSError:
                # Reset: it was shown out before it had said everything.
                return True

    def finish(self) -> Dict[int, Any]:
        """Let ranks 1 and 2 come, and return who is in."""
        guests = [socket.create_connection(self.address) for _ in range(2)]
        for rank, guest in enumerate(guests, 1):
            guest.sendall(hello(rank))
        self._thread.join(PATIENCE_S)
        for each in [*guests, *(link.sock for link in self.links.values())]:
            each.close()
        self._formation.close()
        return self.links


def is_awaited(said: bytes) -> bool:
    """Whether the first 13 bytes are the HELLO of rank 1 or 2, whatever its b."""
    rank = int.from_bytes(said[1:5], "little")
    return said[:1] == b"\1" and rank in {1, 2} and said[9:13] == bytes(4)


def knock(bringup: Bringup) -> Callable[[], None]:
    """Return a search for a HELLO that gets somebody in who is no awaited rank."""

    @settings(SEARCH, max_examples=60)
    @given(said=mutated([hello(rank) for rank in range(4)]))
    def search(said: bytes) -> None:
        assume(not is_awaited(said))
        assert bringup.shows_out(said), f"{said.hex()} got in"

    return search


def test_no_mistaken_hello_gets_in() -> None:
    """Everybody who is no awaited rank is shown out, and the group forms without them."""
    bringup = Bringup(Formation)
    try:
        knock(bringup)()
    finally:
        links = bringup.finish()

    assert sorted(links) == [1, 2]


def test_a_bring_up_that_checks_no_rank_is_found() -> None:
    """The same HELLOs find the bring-up that lets anybody in."""
    bringup = Bringup(AnyRank, 1.5)
    try:
        with pytest.raises(AssertionError, match="got in"):
            knock(bringup)()
    finally:
        bringup.finish()
